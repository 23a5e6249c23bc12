// The package marks its default export as CommonJS transpilers do; a bundler that reads it from an .mjs file sees an object.
// @ts-expect-error -- no types are needed: Grafana's components bring theirs.
export { Scrollbars, Scrollbars as default } from '../node_modules/react-custom-scrollbars-2/lib/index.js';
