// A classic dashboard's JSON as a scene.
import { VariableHide, VariableRefresh } from '@grafana/data';
import {
  ConstantVariable,
  CustomVariable,
  EmbeddedScene,
  QueryVariable,
  SceneControlsSpacer,
  SceneDataTransformer,
  SceneGridItem,
  SceneGridLayout,
  SceneGridRow,
  SceneQueryRunner,
  SceneTimePicker,
  SceneTimeRange,
  SceneVariable,
  SceneVariableSet,
  VariableValueSelectors,
  VizPanel,
} from '@grafana/scenes';
import { UID } from './datasource';
import { KNOWN } from './plugins';

/* eslint-disable @typescript-eslint/no-explicit-any -- the JSON is checked by the project's own tests; here it is only read */
type Json = any;

export interface Range {
  from: string;
  to: string;
}

export function sceneOf(dashboard: Json, range: Range, chosen: Record<string, string[]>): EmbeddedScene {
  return new EmbeddedScene({
    $timeRange: new SceneTimeRange({ ...range, timeZone: 'utc' }),
    $variables: new SceneVariableSet({ variables: dashboard.templating.list.map((one: Json) => variable(one, chosen[one.name])) }),
    controls: [new VariableValueSelectors({}), new SceneControlsSpacer(), new SceneTimePicker({})],
    body: new SceneGridLayout({ children: items(dashboard.panels) }),
  });
}

function variable(json: Json, chosen?: string[]): SceneVariable {
  const common = { name: json.name, label: json.label, hide: json.hide ?? VariableHide.dontHide };
  const several = { isMulti: json.multi, includeAll: json.includeAll, allValue: json.allValue };
  const value = chosen ?? json.current?.value;
  switch (json.type) {
    case 'datasource':
      return new ConstantVariable({ ...common, value: UID, hide: VariableHide.hideVariable });
    case 'query':
      return new QueryVariable({
        ...common,
        ...several,
        datasource: { uid: UID },
        query: typeof json.query === 'string' ? json.query : json.query.query,
        regex: json.regex,
        sort: json.sort,
        refresh: VariableRefresh.onTimeRangeChanged,
        ...(value === undefined ? {} : { value, text: value }),
      });
    case 'custom':
    case 'interval':
      return new CustomVariable({ ...common, ...several, query: json.query, ...(value === undefined ? {} : { value, text: value }) });
    default:
      throw new Error(`the preview has no variable of type ${json.type}`);
  }
}

function items(panels: Json[]): Array<SceneGridItem | SceneGridRow> {
  const children: Array<SceneGridItem | SceneGridRow> = [];
  for (const panel of panels) {
    if (panel.type === 'row') {
      // Shown open, whatever it is in Grafana: a picture cannot be clicked.
      children.push(new SceneGridRow({ title: panel.title, y: panel.gridPos.y, isCollapsible: false, children: [] }));
      children.push(...items(panel.panels ?? []));
    } else {
      children.push(item(panel));
    }
  }
  return children;
}

function item(json: Json): SceneGridItem {
  if (!KNOWN.has(json.type)) {
    throw new Error(`panel ${json.id} (${json.title}): the preview has no panel kind ${json.type}`);
  }
  const { x, y, w: width, h: height } = json.gridPos;
  const body = new VizPanel({
    key: `panel-${json.id}`,
    pluginId: json.type,
    title: json.title,
    description: json.description,
    options: json.options ?? {},
    fieldConfig: json.fieldConfig ?? { defaults: {}, overrides: [] },
    displayMode: json.transparent ? 'transparent' : 'default',
    $data: data(json),
  });
  return new SceneGridItem({ x, y, width, height, body });
}

function data(json: Json): SceneQueryRunner | SceneDataTransformer | undefined {
  if (!json.targets?.length) {
    return undefined;
  }
  const runner = new SceneQueryRunner({
    datasource: { uid: UID },
    queries: json.targets,
    maxDataPoints: json.maxDataPoints ?? 400,
    minInterval: json.interval,
  });
  return json.transformations?.length ? new SceneDataTransformer({ $data: runner, transformations: json.transformations }) : runner;
}
