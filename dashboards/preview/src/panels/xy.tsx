// Grafana publishes no XY component, so this one is drawn here: curves of one field over another, both by name.
import { DataFrame, Field, PanelProps, getFieldDisplayName } from '@grafana/data';
import { config } from '@grafana/runtime';
import { useEffect, useRef } from 'react';
import { note } from './drawn';
import { Empty } from './timeseries';

const EDGE = { left: 56, right: 12, top: 8, bottom: 44 };

interface Mapped {
  name: { fixed: string };
  x: { matcher: { options: string } };
  y: { matcher: { options: string } };
}

interface Curve {
  name: string;
  x: Field;
  y: Field;
  points: Array<[number, number]>;
  color: string;
}

export function XYPanel({ id, data, width, height, options, fieldConfig }: PanelProps<{ series: Mapped[] }>) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const curves = options.series.map((one) => curve(data.series, one)).filter((one): one is Curve => Boolean(one?.points.length));
  note(id, 'xychart', curves.length, fieldConfig.defaults.noValue);
  useEffect(() => {
    if (canvas.current && curves.length) {
      draw(canvas.current, curves);
    }
  });
  return curves.length ? <canvas ref={canvas} width={width} height={height} style={{ width, height }} /> : <Empty text={fieldConfig.defaults.noValue} />;
}

function curve(frames: DataFrame[], one: Mapped): Curve | undefined {
  const [x, y] = [one.x, one.y].map(({ matcher }) => named(frames, matcher.options));
  if (!x || !y) {
    return undefined;
  }
  const points = x.values.map((value: number, place: number) => [value, y.values[place]] as [number, number]);
  const real = points.filter(([left, right]: [number, number]) => Number.isFinite(left) && Number.isFinite(right));
  const color = config.theme2.visualization.getColorByName(y.config.color?.fixedColor ?? 'blue');
  return { name: one.name.fixed, x, y, points: real.sort((a: [number, number], b: [number, number]) => a[0] - b[0]), color };
}

function named(frames: DataFrame[], name: string): Field | undefined {
  return frames.flatMap((frame) => frame.fields.filter((field) => getFieldDisplayName(field, frame, frames) === name))[0];
}

function draw(canvas: HTMLCanvasElement, curves: Curve[]): void {
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  const [wide, high] = [canvas.width - EDGE.left - EDGE.right, canvas.height - EDGE.top - EDGE.bottom];
  const farthest = Math.max(...curves.flatMap((one) => one.points.map(([x]) => x)));
  const stride = round(farthest / 6);
  const highest = Math.max(...curves.map((one) => one.y.config.max ?? Math.max(...one.points.map(([, y]) => y))));
  const place = ([x, y]: [number, number]): [number, number] => [EDGE.left + (x / farthest) * wide, EDGE.top + high - (y / highest) * high];
  const { text, border } = config.theme2.colors;
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.font = '12px sans-serif';
  context.strokeStyle = border.weak;
  context.fillStyle = text.primary;
  const line = (from: [number, number], to: [number, number]) => {
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
  };
  context.textAlign = 'right';
  for (let mark = 0; mark <= 5; mark++) {
    const [, y] = place([0, (highest * mark) / 5]);
    line([EDGE.left, y], [EDGE.left + wide, y]);
    context.fillText(shown(curves[0].y, (highest * mark) / 5), EDGE.left - 6, y + 4);
  }
  context.textAlign = 'center';
  for (let at = 0; at <= farthest; at += stride) {
    const [x] = place([at, 0]);
    line([x, EDGE.top], [x, EDGE.top + high]);
    context.fillText(shown(curves[0].x, at), Math.min(x, EDGE.left + wide - 24), EDGE.top + high + 16);
  }
  curves.forEach((one, index) => {
    context.strokeStyle = context.fillStyle = one.color;
    context.lineWidth = 2;
    context.beginPath();
    one.points.forEach((point) => context.lineTo(...place(point)));
    context.stroke();
    context.textAlign = 'left';
    context.fillRect(EDGE.left + index * 140, canvas.height - 13, 14, 4);
    context.fillStyle = text.primary;
    context.fillText(one.name, EDGE.left + 20 + index * 140, canvas.height - 8);
  });
}

// The next of 1, 2, 5, 10, …: as Grafana's own axes step.
function round(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * ([1, 2, 5].find((one) => one * power >= step) ?? 10);
}

function shown(field: Field, value: number): string {
  const display = field.display?.(value);
  return display ? `${display.prefix ?? ''}${display.text}${display.suffix ?? ''}` : String(value);
}
