// The Prometheus behind the pictures: ranges, instants and label values, as frames.
import {
  DataFrame,
  DataQuery,
  DataQueryRequest,
  DataQueryResponse,
  FieldType,
  MetricFindValue,
  TestDataSourceResponse,
  toDataFrame,
} from '@grafana/data';
import { RuntimeDataSource, SceneObject, sceneGraph } from '@grafana/scenes';

export const UID = 'preview-prometheus';

interface PrometheusQuery extends DataQuery {
  expr: string;
  format?: 'time_series' | 'table' | 'heatmap';
  instant?: boolean;
  range?: boolean;
  legendFormat?: string;
  interval?: string;
}

type Labels = Record<string, string>;
interface Series {
  metric: Labels;
  values?: Array<[number, string]>;
  value?: [number, string];
}

const SCRAPE_SECONDS = 15;

export class Prometheus extends RuntimeDataSource<PrometheusQuery> {
  constructor() {
    super('prometheus', UID);
  }

  async query(request: DataQueryRequest<PrometheusQuery>): Promise<DataQueryResponse> {
    const targets = request.targets.filter((target) => !target.hide && target.expr);
    const frames = await Promise.all(targets.map((target) => this.run(target, request, targets.length > 1)));
    return { data: frames.flat() };
  }

  async metricFindQuery(query: string, options?: { scopedVars?: unknown; range?: { from: { unix(): number }; to: { unix(): number } } }): Promise<MetricFindValue[]> {
    const asked = interpolate(query, options?.scopedVars);
    const result = /^query_result\((.+)\)$/s.exec(asked.trim());
    if (result) {
      const time = String(options?.range?.to.unix() ?? Date.now() / 1000);
      const { result: series } = await ask<{ result: Series[] }>(`query?${new URLSearchParams({ query: result[1], time })}`);
      return series.map((one) => ({ text: line(one) }));
    }
    const found = /^label_values\((.+),\s*([a-z_]+)\)$/s.exec(asked.trim());
    if (!found) {
      throw new Error(`the preview reads label_values(selector, label) and query_result(query), got ${query}`);
    }
    const parameters = new URLSearchParams({ 'match[]': found[1] });
    if (options?.range) {
      parameters.set('start', String(options.range.from.unix()));
      parameters.set('end', String(options.range.to.unix()));
    }
    const values = await ask<string[]>(`label/${found[2]}/values?${parameters}`);
    return values.map((text) => ({ text }));
  }

  testDatasource(): Promise<TestDataSourceResponse> {
    return Promise.resolve({ status: 'success', message: 'ok' });
  }

  private async run(target: PrometheusQuery, request: DataQueryRequest<PrometheusQuery>, several: boolean): Promise<DataFrame[]> {
    const seconds = Math.max(request.intervalMs / 1000, duration(target.interval) ?? SCRAPE_SECONDS);
    const expr = expand(target.expr, seconds, duration(target.interval) ?? SCRAPE_SECONDS, request);
    const to = request.range.to.unix();
    if (target.instant) {
      const found = await ask<{ result: Series[] }>(`query?${new URLSearchParams({ query: expr, time: String(to) })}`);
      return target.format === 'table' ? [table(found.result, target.refId, several ? `Value #${target.refId}` : 'Value')] : found.result.map((one) => frame(one, target));
    }
    const step = Math.ceil(seconds);
    const parameters = { query: expr, start: String(request.range.from.unix()), end: String(to), step: String(step) };
    const found = await ask<{ result: Series[] }>(`query_range?${new URLSearchParams(parameters)}`);
    const sorted = target.format === 'heatmap' ? byBound(found.result) : found.result;
    return sorted.map((one) => frame(one, target));
  }
}

function expand(expr: string, seconds: number, scrape: number, request: DataQueryRequest<PrometheusQuery>): string {
  const rate = Math.max(seconds + scrape, 4 * scrape);
  const ranged = expr
    .replaceAll('$__rate_interval', `${rate}s`)
    .replaceAll('$__interval', `${Math.ceil(seconds)}s`)
    .replaceAll('$__range', `${request.range.to.unix() - request.range.from.unix()}s`);
  return interpolate(ranged, request.scopedVars);
}

function interpolate(text: string, scopedVars: unknown): string {
  const scoped = scopedVars as Record<string, { value?: unknown }> | undefined;
  const holder = scoped?.__sceneObject?.value as { valueOf(): SceneObject } | undefined;
  return holder ? sceneGraph.interpolate(holder.valueOf(), text, scoped as never, escaped) : text;
}

// Several values become an alternation, and what they hold is text, not pattern: as Grafana's own data source does it.
function escaped(value: unknown): string {
  const one = (text: unknown) => String(text).replace(/[\\^$.*+?()[\]{}|]/g, '\\\\$&');
  return Array.isArray(value) ? (value.length === 1 ? one(value[0]) : `(${value.map(one).join('|')})`) : String(value);
}

async function ask<Answer>(path: string): Promise<Answer> {
  const answer = await fetch(`/prometheus/api/v1/${path}`);
  const body = (await answer.json()) as { status: string; data: Answer; error?: string };
  if (body.status !== 'success') {
    throw new Error(body.error ?? answer.statusText);
  }
  return body.data;
}

function frame(series: Series, target: PrometheusQuery): DataFrame {
  const points = series.values ?? (series.value ? [series.value] : []);
  const name = legend(target.legendFormat, series.metric);
  return toDataFrame({
    refId: target.refId,
    name,
    fields: [
      { name: 'Time', type: FieldType.time, values: points.map(([at]) => at * 1000) },
      {
        name: 'Value',
        type: FieldType.number,
        labels: series.metric,
        config: { displayNameFromDS: name },
        values: points.map(([, value]) => number(value)),
      },
    ],
  });
}

function table(series: Series[], refId: string, value: string): DataFrame {
  const labels = [...new Set(series.flatMap((one) => Object.keys(one.metric)))].sort();
  return toDataFrame({
    refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: series.map((one) => (one.value?.[0] ?? 0) * 1000) },
      ...labels.map((label) => ({ name: label, type: FieldType.string, values: series.map((one) => one.metric[label] ?? '') })),
      { name: value, type: FieldType.number, config: {}, values: series.map((one) => number(one.value?.[1] ?? 'NaN')) },
    ],
  });
}

function byBound(series: Series[]): Series[] {
  return [...series].sort((a, b) => number(a.metric.le ?? '') - number(b.metric.le ?? ''));
}

function legend(format: string | undefined, labels: Labels): string {
  if (format && format !== '__auto') {
    return format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label: string) => labels[label] ?? '');
  }
  const { __name__: name = '', ...rest } = labels;
  const text = Object.entries(rest).map(([key, value]) => `${key}="${value}"`);
  return text.length ? `${name}{${text.join(', ')}}` : name || 'Value';
}

// One line of a query's result as Grafana hands it to a variable's regex.
function line({ metric, value }: Series): string {
  const { __name__: name = '', ...labels } = metric;
  const text = Object.entries(labels).map(([key, one]) => `${key}="${one}"`);
  return `${name}{${text.join(',')}} ${value?.[1]} ${(value?.[0] ?? 0) * 1000}`;
}

function number(text: string): number {
  return text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text);
}

function duration(text: string | undefined): number | undefined {
  const found = /^(\d+)(s|m|h)$/.exec(text ?? '');
  return found ? Number(found[1]) * { s: 1, m: 60, h: 3600 }[found[2] as 's' | 'm' | 'h'] : undefined;
}
