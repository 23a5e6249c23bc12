// What each panel really drew, for the picture's caption and for the check that no panel stays empty.
export interface Drawn {
  kind: string;
  series: number;
  /** What stands in the panel where nothing was drawn. */
  message?: string;
}

declare global {
  interface Window {
    drawn: Record<number, Drawn>;
  }
}

window.drawn = {};

export function note(id: number, kind: string, series: number, message?: string): void {
  window.drawn[id] = { kind, series, message };
}
