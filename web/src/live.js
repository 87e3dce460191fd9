// A page of `plimsoll serve`: fetches the run's data again and again while it grows.
//
// The token comes with the address, after #, which browsers do not send; the page removes it from the address bar and
// keeps it for reloads of this tab.
import {History} from './history.js';
import {unpack} from './unpack.js';

const EVERY_MS = 1000, KEY = 'plimsoll-token';

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function read_token() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, '', location.pathname);
  }
  return given ?? sessionStorage.getItem(KEY);
}

// The button in the page's head: says how it stands, and pauses.
class State {
  constructor() {
    this.button = document.getElementById('live');
    this.button.hidden = false;
    this.paused = false;
    this.button.addEventListener('click', () => {
      this.paused = !this.paused;
      this.say(this.paused ? 'paused' : 'live');
    });
    this.say('live');
  }
  say(state) {
    const texts = {live: ['Live', 'Pause'], paused: ['Paused', 'Go on'], complete: ['Complete', 'The run has ended'], lost: ['No connection', 'The server does not answer']};
    [this.button.textContent, this.button.title] = texts[state];
    this.button.dataset.state = state;
    this.button.disabled = state === 'complete';
  }
}

// What the server has that is newer than `have`; {state, have, history?}.
async function ask(token, have) {
  const response = await fetch(`/data?have=${have}`, {headers: {Authorization: `Bearer ${token}`}, cache: 'no-store'});
  if (response.status === 401) return {state: 'refused'};
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const state = response.headers.get('Plimsoll-State') === 'complete' ? 'complete' : 'live';
  if (response.status === 204) return {state, have};
  const root = new DOMParser().parseFromString(await response.text(), 'text/html');
  const data = await unpack(root, () => {});
  return {state, have: (response.headers.get('ETag') ?? '').replaceAll('"', ''), history: await History.make(data, () => {})};
}

export async function follow(loading, show) {
  const token = read_token();
  if (!token) {
    loading.textContent = 'This page needs the token: open the whole address that plimsoll serve printed.';
    return;
  }
  loading.textContent = 'Waiting for the first events…';
  const state = new State();
  for (let have = '';;) {
    const begin = performance.now();
    try {
      const answer = state.paused ? {state: 'paused', have} : await ask(token, have);
      if (answer.state === 'refused') {
        loading.textContent = 'The server refused the token: open the address that plimsoll serve printed last.';
        state.say('lost');
        return;
      }
      if (answer.history && !state.paused) await show(answer.history);
      if (!state.paused) state.say(answer.state);
      have = answer.have;
      document.documentElement.dataset.have = have;  // For tests.
      if (answer.state === 'complete') return;
    } catch (error) {
      state.say('lost');
      console.info(error.message);
    }
    await wait(Math.max(EVERY_MS, 2 * (performance.now() - begin)));
  }
}
