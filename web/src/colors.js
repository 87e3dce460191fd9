// Colours of canvases; the others are in style.css. People with colour blindness can distinguish the categories, which
// have the order of the stack in the legend, the table and the text.
const LIGHT = {
  text: '#16222e', soft: '#4d5b68', grid: '#dfe5ea', hole: '#e9edf1', accent: '#b3261e', limit: '#b3261e',
  //            parameters gradients  optimizer  activations inputs    workspace  cache      other      unused
  categories: ['#2f5fb3', '#e08a3c', '#7a5bb5', '#2f9c95', '#d9b23c', '#8b98a5', '#c9567f', '#9a7b62', '#d3dbe3'],
  inks: ['#ffffff', '#1c1206', '#ffffff', '#04201e', '#221a02', '#10161c', '#1e0510', '#140c05', '#28323c'],
};
const DARK = {
  text: '#e6edf3', soft: '#a3b1be', grid: '#2a3641', hole: '#212b35', accent: '#ff8a80', limit: '#ff8a80',
  categories: ['#5c8fe0', '#e79a52', '#9b7fd4', '#3fb3ab', '#dfbd55', '#7d8a97', '#dc7199', '#b39478', '#34424f'],
  inks: ['#071224', '#1c1206', '#120a22', '#04201e', '#221a02', '#0c1116', '#1e0510', '#140c05', '#d5dee6'],
};

const system = window.matchMedia('(prefers-color-scheme: dark)');
let chosen = 'auto';

export const is_dark = () => chosen === 'dark' || (chosen === 'auto' && system.matches);
export const colors = () => is_dark() ? DARK : LIGHT;

export function watch_theme(on_change) {
  const apply = () => {
    document.documentElement.dataset.theme = is_dark() ? 'dark' : 'light';
    on_change(colors());
  };
  system.addEventListener('change', apply);
  const buttons = [...document.querySelectorAll('[data-theme-choice]')];
  for (const button of buttons)
    button.addEventListener('click', () => {
      chosen = button.dataset.themeChoice;
      for (const other of buttons) other.setAttribute('aria-pressed', String(other === button));
      apply();
    });
}
