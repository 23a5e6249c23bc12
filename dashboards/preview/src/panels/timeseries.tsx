import { Field, FieldType, PanelProps } from '@grafana/data';
import { LegendDisplayMode, VizLegendOptions } from '@grafana/schema';
import { TimeSeries } from '@grafana/ui';
import { note } from './drawn';

interface Options {
  legend: VizLegendOptions;
}

export function TimeSeriesPanel({ id, data, width, height, timeRange, timeZone, options, fieldConfig }: PanelProps<Options>) {
  const frames = data.series.filter((frame) => frame.fields.some(hasNumbers));
  const series = frames.flatMap((frame) => frame.fields.filter(hasNumbers)).length;
  note(id, 'timeseries', series, fieldConfig.defaults.noValue);
  if (!series) {
    return <Empty text={fieldConfig.defaults.noValue} />;
  }
  const legend = { ...options.legend, showLegend: options.legend?.showLegend ?? true, displayMode: options.legend?.displayMode ?? LegendDisplayMode.List };
  return (
    <TimeSeries frames={frames} width={width} height={height} timeRange={timeRange} timeZone={timeZone} legend={legend as VizLegendOptions}>
      {() => null}
    </TimeSeries>
  );
}

export function hasNumbers(field: Field): boolean {
  return field.type === FieldType.number && field.values.some((value) => Number.isFinite(value));
}

export function Empty({ text }: { text?: string }) {
  return <div className="empty">{text ?? 'No data'}</div>;
}

