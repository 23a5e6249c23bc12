// The panel kinds that the pack uses. Anything else is refused, so that a picture never shows less than Grafana would.
import { FieldColorModeId, PanelPlugin } from '@grafana/data';
import { sceneUtils } from '@grafana/scenes';
import { HeatmapPanel } from './panels/heatmap';
import { TablePanel } from './panels/table';
import { TimeSeriesPanel } from './panels/timeseries';
import { XYPanel } from './panels/xy';
import { StatPanel } from './panels/values';

const PANELS: Record<string, unknown> = {
  timeseries: TimeSeriesPanel,
  stat: StatPanel,
  table: TablePanel,
  heatmap: HeatmapPanel,
  xychart: XYPanel,
};

// Drawing options of a panel kind's own; each is taken as it stands.
const CUSTOM: Record<string, string[]> = {
  timeseries: [
    'drawStyle', 'lineInterpolation', 'lineWidth', 'fillOpacity', 'gradientMode', 'lineStyle', 'spanNulls', 'insertNulls', 'showPoints', 'pointSize',
    'stacking', 'barAlignment', 'axisPlacement', 'axisLabel', 'axisWidth', 'axisSoftMin', 'axisSoftMax', 'axisColorMode', 'axisBorderShow', 'axisCenteredZero',
    'scaleDistribution', 'hideFrom', 'thresholdsStyle', 'transform', 'fillBelowTo',
  ],
  table: ['align', 'cellOptions', 'width', 'minWidth', 'filterable', 'hidden', 'inspect', 'displayMode', 'hideFrom', 'wrapText', 'footer'],
  heatmap: ['scaleDistribution', 'hideFrom'],
  xychart: ['show', 'lineWidth', 'fillOpacity', 'axisPlacement', 'pointSize', 'lineStyle'],
};

export function register(): void {
  for (const [id, component] of Object.entries(PANELS)) {
    const plugin = new PanelPlugin(component as never);
    plugin.useFieldConfig({
      standardOptions: { color: { defaultValue: { mode: FieldColorModeId.PaletteClassic } } } as never,
      useCustomConfig: (builder) => {
        for (const name of CUSTOM[id] ?? []) {
          builder.addCustomEditor({
            id: name,
            path: name,
            name,
            editor: () => null,
            override: () => null,
            process: (value: unknown) => value,
            shouldApply: () => true,
            settings: {},
          } as never);
        }
      },
    });
    sceneUtils.registerRuntimePanelPlugin({ pluginId: id, plugin });
  }
}

export const KNOWN = new Set(Object.keys(PANELS));
