// What Grafana's application sets up around its components; here as small as the components allow.
import {
  EventBusSrv,
  FieldConfigPropertyItem,
  FieldType,
  displayNameOverrideProcessor,
  identityOverrideProcessor,
  standardEditorsRegistry,
  standardFieldConfigEditorRegistry,
  standardTransformers,
  standardTransformersRegistry,
  thresholdsOverrideProcessor,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
} from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import {
  config,
  setAppEvents,
  setDataSourceSrv,
  setPluginImportUtils,
  setRunRequest,
  setTemplateSrv,
} from '@grafana/runtime';
import { SceneObject, sceneGraph } from '@grafana/scenes';
import { from, isObservable, map, of, switchMap } from 'rxjs';

type Processor = FieldConfigPropertyItem['process'];

// Standard options that panels may set, each with what makes its stored form a usable one.
const STANDARD: Array<[string, Processor]> = [
  ['displayName', displayNameOverrideProcessor as Processor],
  ['unit', unitOverrideProcessor as Processor],
  ['min', identityOverrideProcessor],
  ['max', identityOverrideProcessor],
  ['decimals', identityOverrideProcessor],
  ['color', identityOverrideProcessor],
  ['noValue', identityOverrideProcessor],
  ['links', identityOverrideProcessor],
  ['mappings', valueMappingsOverrideProcessor as Processor],
  ['thresholds', thresholdsOverrideProcessor as Processor],
];

function standardOptions(): FieldConfigPropertyItem[] {
  return STANDARD.map(([id, process]) => ({
    id,
    path: id,
    name: id,
    editor: () => null,
    override: () => null,
    process,
    shouldApply: (field: { type: FieldType }) => id !== 'color' || field.type !== FieldType.time,
    settings: {},
  })) as unknown as FieldConfigPropertyItem[];
}


export async function prepare(dark: boolean): Promise<void> {
  await initPluginTranslations('preview', []);
  config.theme2.isDark = dark;
  config.featureToggles = {} as typeof config.featureToggles;
  standardEditorsRegistry.setInit(() => []);
  standardFieldConfigEditorRegistry.setInit(standardOptions);
  standardTransformersRegistry.setInit(
    () =>
      [...new Map(Object.values(standardTransformers).map((one) => [one.id, one])).values()].map((transformation) => ({
        id: transformation.id,
        name: transformation.name,
        transformation: () => Promise.resolve(transformation),
        editor: () => null,
        excludeFromPicker: true,
        imageDark: '',
        imageLight: '',
      })) as never
  );
  setAppEvents(new EventBusSrv());
  setPluginImportUtils({ importPanelPlugin: refuse('panel plugin'), getPanelPluginFromCache: () => undefined } as never);
  setDataSourceSrv({ get: refuse('data source'), getInstanceSettings: () => undefined, getList: () => [] } as never);
  setTemplateSrv({
    replace: (text?: string, scoped?: Record<string, { value?: unknown }>, format?: string) => {
      const scene = scoped?.__sceneObject?.value;
      return text && scene ? sceneGraph.interpolate(unwrap(scene), text, scoped as never, format) : (text ?? '');
    },
    getVariables: () => [],
    containsTemplate: (text?: string) => (text ?? '').includes('$'),
    updateTimeRange: () => undefined,
  } as never);
  // A request is one observable of panel data; Grafana's own runner adds polling and cancelling that a picture does not need.
  setRunRequest(((source: { query: (request: unknown) => unknown }, request: { range: unknown }) => {
    const answer = source.query(request);
    return (isObservable(answer) ? answer : from(answer as Promise<unknown>)).pipe(
      switchMap((value) => of(value)),
      map((value) => ({ state: 'Done', timeRange: request.range, request, ...(value as object), series: (value as { data: unknown[] }).data }))
    );
  }) as never);
}

function unwrap(scene: unknown): SceneObject {
  const wrapped = scene as { valueOf: () => unknown };
  return (typeof wrapped === 'function' ? (wrapped as () => SceneObject)() : wrapped.valueOf()) as SceneObject;
}

function refuse(what: string) {
  return (name: string) => Promise.reject(new Error(`the preview has no ${what} ${name}`));
}
