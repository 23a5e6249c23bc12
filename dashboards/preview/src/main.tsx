import { createTheme } from '@grafana/data';
import { config } from '@grafana/runtime';
import { sceneUtils } from '@grafana/scenes';
import { PortalContainer } from '@grafana/ui';
import { ThemeContext } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';
import { createRoot } from 'react-dom/client';
import { MemoryRouter } from 'react-router-dom';
import { Prometheus } from './datasource';
import { prepare } from './environment';
import { register } from './plugins';
import { sceneOf } from './scene';
import './style.css';

async function main(): Promise<void> {
  const asked = new URLSearchParams(location.search);
  const dark = asked.get('theme') !== 'light';
  const theme = createTheme({ colors: { mode: dark ? 'dark' : 'light' } });
  config.theme2 = theme;
  document.body.className = dark ? 'theme-dark' : 'theme-light';
  await prepare(dark);
  register();
  sceneUtils.registerRuntimeDataSource({ dataSource: new Prometheus() as never });
  const dashboard = await (await fetch(`/dashboards/${asked.get('dashboard')}`)).json();
  const chosen: Record<string, string[]> = {};
  for (const name of asked.keys()) {
    if (name.startsWith('var-')) {
      chosen[name.slice(4)] = asked.getAll(name);
    }
  }
  const range = { from: asked.get('from') ?? dashboard.time.from, to: asked.get('to') ?? dashboard.time.to };
  const scene = sceneOf(dashboard, range, chosen);
  createRoot(document.getElementById('root') as HTMLElement).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <MemoryRouter>
        <h1 className="title">{dashboard.title}</h1>
        <scene.Component model={scene} />
      </MemoryRouter>
      <PortalContainer />
    </ThemeContext.Provider>
  );
}

main().catch((error: Error) => {
  document.body.dataset.failed = String(error.stack ?? error);
  document.body.append(String(error.stack ?? error));
});
