// Grafana publishes no heatmap component, so this one is drawn here: time across, bucket bounds up, share of the column as colour.
import { DataFrame, Field, FieldType, PanelProps, dateTimeFormat } from '@grafana/data';
import { useEffect, useRef } from 'react';
import { note } from './drawn';
import { Empty } from './timeseries';

const EDGE = { left: 64, right: 8, top: 6, bottom: 22 };

interface Cells {
  bounds: string[];
  times: number[];
  counts: number[][];
}

export function HeatmapPanel({ id, data, width, height, fieldConfig, timeRange, timeZone }: PanelProps<object>) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const cells = read(data.series);
  const filled = cells.counts.flat().filter((count) => count > 0).length;
  note(id, 'heatmap', filled ? cells.bounds.length : 0, fieldConfig.defaults.noValue);
  useEffect(() => {
    if (canvas.current && filled) {
      draw(canvas.current, cells, [timeRange.from.valueOf(), timeRange.to.valueOf()], timeZone);
    }
  });
  return filled ? <canvas ref={canvas} width={width} height={height} style={{ width, height }} /> : <Empty text={fieldConfig.defaults.noValue} />;
}

// Cumulative buckets, one series a bound, become the count between two bounds.
function read(frames: DataFrame[]): Cells {
  const rows = frames.map((frame) => ({ bound: String(bound(frame)), at: column(frame) }));
  const times = [...new Set(rows.flatMap((row) => [...row.at.keys()]))].sort((a, b) => a - b);
  const counts = rows.map((row, place) =>
    times.map((time) => Math.max((row.at.get(time) ?? 0) - (place ? (rows[place - 1].at.get(time) ?? 0) : 0), 0))
  );
  return { bounds: rows.map((row) => row.bound), times, counts };
}

function bound(frame: DataFrame): string {
  const field = frame.fields.find((one) => one.type === FieldType.number);
  return field?.labels?.le ?? frame.name ?? '';
}

function column(frame: DataFrame): Map<number, number> {
  const [time, value] = [FieldType.time, FieldType.number].map((type) => frame.fields.find((one) => one.type === type) as Field);
  return new Map(time.values.map((at: number, place: number) => [at, value.values[place]]));
}

function draw(canvas: HTMLCanvasElement, { bounds, times, counts }: Cells, [from, to]: [number, number], timeZone: string): void {
  const context = canvas.getContext('2d');
  if (!context) {
    return;
  }
  const [wide, high] = [canvas.width - EDGE.left - EDGE.right, canvas.height - EDGE.top - EDGE.bottom];
  const across = (time: number) => EDGE.left + ((time - from) / (to - from)) * wide;
  const step = times.length > 1 ? times[1] - times[0] : (to - from) / 60;
  const cellHigh = high / bounds.length;
  const highest = Math.max(...counts.flat());
  const ink = getComputedStyle(canvas).color;
  context.clearRect(0, 0, canvas.width, canvas.height);
  counts.forEach((row, up) =>
    row.forEach((count, place) => {
      if (count > 0) {
        const [left, right] = [across(times[place] - step), across(times[place])];
        context.fillStyle = `hsla(212, 80%, 52%, ${0.12 + 0.88 * Math.sqrt(count / highest)})`;
        context.fillRect(left, EDGE.top + high - (up + 1) * cellHigh, Math.ceil(right - left), Math.ceil(cellHigh) - 1);
      }
    })
  );
  context.fillStyle = ink;
  context.font = '11px sans-serif';
  context.textAlign = 'right';
  const every = Math.ceil(bounds.length / (high / 14));
  bounds.forEach((text, up) => up % every === 0 && context.fillText(text, EDGE.left - 6, EDGE.top + high - up * cellHigh - 2));
  context.textAlign = 'center';
  for (let mark = 1; mark < 6; mark++) {
    const at = from + (mark * (to - from)) / 6;
    context.fillText(dateTimeFormat(at, { timeZone, format: 'HH:mm' }), across(at), canvas.height - 7);
  }
}
