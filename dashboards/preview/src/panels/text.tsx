import { PanelProps, renderMarkdown } from '@grafana/data';
import { note } from './drawn';

export function TextPanel({ id, options }: PanelProps<{ content: string }>) {
  note(id, 'text', 1);
  return <div className="markdown-html" dangerouslySetInnerHTML={{ __html: renderMarkdown(options.content) }} />;
}
