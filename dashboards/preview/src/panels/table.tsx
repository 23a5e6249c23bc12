import { PanelProps } from '@grafana/data';
import { Table } from '@grafana/ui';
import { note } from './drawn';
import { Empty } from './timeseries';

export function TablePanel({ id, data, width, height, fieldConfig }: PanelProps<object>) {
  const frame = data.series.find((one) => one.length > 0);
  note(id, 'table', frame?.length ?? 0, fieldConfig.defaults.noValue);
  return frame ? <Table data={frame} width={width} height={height} /> : <Empty text={fieldConfig.defaults.noValue} />;
}
