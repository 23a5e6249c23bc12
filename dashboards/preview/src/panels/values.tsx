// Stat: reduced values, each with its own colour, unit and title.
import { FieldDisplay, PanelProps, ReduceDataOptions, VizOrientation, getDisplayValueAlignmentFactors, getFieldDisplayValues } from '@grafana/data';
import {
  BigValue,
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  VizRepeater,
} from '@grafana/ui';
import { VizTextDisplayOptions } from '@grafana/schema';
import { config } from '@grafana/runtime';
import { note } from './drawn';
import { Empty } from './timeseries';

interface Options {
  reduceOptions: ReduceDataOptions;
  orientation?: VizOrientation;
  colorMode?: BigValueColorMode;
  graphMode?: BigValueGraphMode;
  justifyMode?: BigValueJustifyMode;
  textMode?: BigValueTextMode;
  text?: VizTextDisplayOptions;
  wideLayout?: boolean;
}

type Draw = (options: Options, value: FieldDisplay, size: { width: number; height: number }, all: FieldDisplay[]) => React.JSX.Element;

function panelOf(kind: string, draw: Draw) {
  return function Values(props: PanelProps<Options>) {
    const { id, data, width, height, options, fieldConfig, replaceVariables, timeZone } = props;
    const read = () =>
      getFieldDisplayValues({
        fieldConfig,
        reduceOptions: options.reduceOptions,
        replaceVariables,
        theme: config.theme2,
        data: data.series,
        sparkline: options.graphMode !== undefined && options.graphMode !== BigValueGraphMode.None,
        timeZone,
      });
    const values = read();
    // Without data there is one value all the same: the words that stand for it.
    const empty = !data.series.some((frame) => frame.length);
    const real = values.filter((value) => !empty && Number.isFinite(value.display.numeric));
    note(id, kind, real.length, values.map((value) => value.display.text).join(' '));
    if (!values.length) {
      return <Empty text={fieldConfig.defaults.noValue} />;
    }
    return (
      <VizRepeater
        getValues={() => values}
        getAlignmentFactors={getDisplayValueAlignmentFactors}
        renderValue={({ value, width, height }) => draw(options, value, { width, height }, values)}
        width={width}
        height={height}
        source={data}
        autoGrid
        renderCounter={0}
        orientation={options.orientation ?? VizOrientation.Auto}
      />
    );
  };
}

export const StatPanel = panelOf('stat', (options, value, size, all) => (
  <BigValue
    value={value.display}
    count={all.length}
    sparkline={value.sparkline}
    colorMode={options.colorMode ?? BigValueColorMode.Value}
    graphMode={options.graphMode ?? BigValueGraphMode.None}
    justifyMode={options.justifyMode ?? BigValueJustifyMode.Auto}
    textMode={options.textMode ?? BigValueTextMode.Auto}
    text={options.text}
    disableWideLayout={!options.wideLayout}
    theme={config.theme2}
    {...size}
  />
));
