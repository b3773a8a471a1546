// The page shows what the API of its server answers. Text enters it as text nodes and values, never
// as HTML. All paths are relative, so that it also works below a path of a proxy.

const BATCH = 16; // sentences of a request: a long text is shown bit by bit
const CHOICES = 4; // alternatives of a sentence, itself included
const MOST_KNOWN = 5000; // sentences whose translations the page remembers
const PAUSES = 4; // how many pauses long a text may grow before it is translated without a pause

const find = (id) => document.getElementById(id);
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
// The mirror of a text field lies behind it and holds its marks: {span, part, word, start, end}.
const pane = (id) => ({ area: find(id), mirror: find(`${id}-mirror`), marks: [] });
const panes = [pane("source"), pane("target")];
const [source, target] = panes.map(({ area }) => area);
const [from, to] = [find("source-language"), find("target-language")];
const known = new Map(); // translations of sentences: {options, chosen: one of them, complete}
let languages = [], models = [], memories = [], settings = {};
let timer = 0, changed = 0; // of a change that is not sent yet: what will send it, when it came
let job = { source: "", memory: "", parts: [] }; // what is shown: parts are {start, text, entry of `known`}
let settled = false; // whether the job is the one that the fields ask for, and is finished
let current = 0; // the part in which the caret is
let running = new AbortController(), sending = new AbortController();
let kept = {}; // choices that outlive the page, unless the browser forbids it
try { kept = localStorage; } catch { /* private mode */ }

const showError = (message) => (find("error").textContent = message);
const showStatus = (message) => (find("status").textContent = message);

const NO_ANSWER = "The server does not answer; is it still running?";
const refusal = (content, status) =>
  new Error(content?.error ?? `The server answered with status ${status}.`);
const authorization = () =>
  find("key").value ? { Authorization: `Bearer ${find("key").value.trim()}` } : {};

async function ask(path, { headers, signal, ...request }) {
  const sent = { ...request, signal, headers: { ...authorization(), ...headers } };
  const answer = await fetch(path, sent).catch((error) => {
    throw signal?.aborted ? error : new Error(NO_ANSWER);
  });
  if (answer.ok) return answer;
  throw refusal(await answer.json().catch(() => ({})), answer.status);
}

async function call(path, body, signal) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  const method = body ? "POST" : "GET";
  const answer = await ask(path, { method, headers, body: JSON.stringify(body), signal });
  const content = await answer.json().catch(() => ({}));
  signal?.throwIfAborted();
  return content;
}

// Only the newest piece of work shows anything: it aborts the one before.
async function asNewest(work) {
  running.abort();
  const { signal } = (running = new AbortController());
  find("card").ariaBusy = "true";
  try {
    await work(signal);
    showError("");
  } catch (error) {
    if (!signal.aborted) showError(error.message);
  }
  if (signal === running.signal) find("card").ariaBusy = "false";
}

// ---- languages
const NAMES = new Intl.DisplayNames("en", { type: "language" });

function nameOf(code) {
  if (code === "auto") return "Detect language";
  const listed = languages.find((language) => language.code === code)?.name;
  try { return listed ?? NAMES.of(code); } catch { return code; } // it is no code of a language
}

function targetsOf(code) {
  const each = languages.filter((language) => ["auto", language.code].includes(code));
  return [...new Set(each.flatMap(({ code, targets }) => targets.filter((to) => to !== code)))];
}

function fill(select, codes, wanted) {
  select.replaceChildren(...codes.map((code) => new Option(nameOf(code), code)));
  if (codes.includes(wanted)) select.value = wanted;
}

function chooseLanguages(sourceCode, targetCode) {
  const codes = languages.map(({ code }) => code).filter((code) => targetsOf(code).length);
  fill(from, ["auto", ...codes], sourceCode);
  fill(to, targetsOf(from.value), targetCode);
  kept.source = from.value;
  job.source = from.value === "auto" ? "" : from.value;
  chooseTarget(to.value);
}

function chooseTarget(code) {
  kept.target = to.value = code;
  find("glossary-language").textContent = nameOf(code);
  find("glossary").value = kept[`glossary:${code}`] ?? "";
  find("exact").checked = Boolean(kept.exact);
  readGlossary();
}

async function detect(text, signal) {
  const candidates = await call("detect", { q: text.slice(0, 2000).toWellFormed() }, signal);
  const found = candidates.find(({ language }) => targetsOf(language).length);
  const code = found?.language;
  const how = found?.confidence < 50 ? "perhaps" : "detected"; // low: of no language that is served
  from.options[0].text = code ? `${nameOf(code)} (${how})` : nameOf("auto");
  if (!code) throw new Error("The language was not recognised; choose it from the list.");
  if (!targetsOf(code).includes(to.value)) chooseTarget(targetsOf(code)[0]);
  return code;
}

function swap() {
  const codes = targetsOf(to.value);
  if (!codes.length || (job.source && !codes.includes(job.source))) {
    return showError("This server has no model for the other direction.");
  }
  chooseLanguages(to.value, job.source);
  if (settled && target.value) source.value = target.value; // else it is of another text
  textChanged(0);
}

// ---- text
// A full stop that may belong to an abbreviation ends no part: the server splits parts further, and
// knows more. A word without a vowel is taken for an abbreviation, and so are some others.
const ABBREVIATION = new RegExp(
  "(?:^|[^\\p{L}\\p{N}])(?:\\p{L}|\\p{N}{1,2}|[b-df-hj-np-tv-xz]+|al|ca|capt|co|etc|evtl|fig|gen"
  + "|gov|inc|inkl|mlle|mme|no|prof|rev|sen|usw)\\.[^\\S\\n]*$", "iu");
const SENTENCES = new Intl.Segmenter("en", { granularity: "sentence" });
// No space follows a sentence of Chinese or Japanese; one does in Thai, Khmer and the like.
const ENDS_WITHOUT_SPACE =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\u3000-\u303f\uff00-\uffef]\P{L}*$/u;

// The sentences of a text, {start, text}, without the white space around them.
function split(text) {
  const parts = [];
  let open = 0; // where the part begins that has not ended
  for (const { segment, index } of SENTENCES.segment(text)) {
    const end = index + segment.length;
    if (ABBREVIATION.test(segment) && end < text.length) continue;
    const piece = text.slice(open, end);
    if (piece.trim()) parts.push({ start: open + piece.search(/\S/), text: piece.trim() });
    open = end;
  }
  return parts;
}

function readGlossary() {
  const lines = find("glossary").value.split("\n");
  const found = lines.map((line) => /^\s*(\S.*?)\s*=\s*(\S.*?)\s*$/.exec(line));
  const wrong = lines.findIndex((line, index) => line.trim() && !found[index]) + 1;
  const note = `Line ${wrong} is left out: it is not “term = translation”.`;
  find("glossary-note").textContent = wrong ? note : "";
  return found.filter(Boolean).map(([, source, target]) => ({ source, target }));
}

function textChanged(delay) {
  draw(panes[0], source.value, []);
  const numbers = settings.charLimit > 0 ? [length(), settings.charLimit] : [length()];
  find("count").textContent = numbers.map((number) => number.toLocaleString("en")).join(" / ");
  find("count").classList.toggle("too-many", isTooLong());
  schedule(delay);
}

// Characters are those of Unicode, as the server counts them, and not JavaScript's units.
const length = () => [...source.value].length;
const isTooLong = () => settings.charLimit > 0 && length() > settings.charLimit;

// Translate after a pause of typing. Who types without a pause sees translations as well, one after
// the other: a piece of work is aborted only when the next one begins.
function schedule(pause = settings.frontendTimeout) {
  const now = performance.now();
  if (!timer) changed = now;
  clearTimeout(timer);
  settled = false;
  const isBusy = find("card").ariaBusy === "true";
  const latest = isBusy ? pause : changed + PAUSES * pause - now;
  timer = setTimeout(() => asNewest(translate), Math.min(pause, latest));
}

// ---- translation
async function translate(signal) {
  clearTimeout(timer);
  timer = 0;
  settled = false;
  showStatus("");
  const text = source.value;
  if (isTooLong()) {
    const most = settings.charLimit.toLocaleString("en");
    throw new Error(`The text has more than ${most} characters. Shorten it, or send it as a file.`);
  }
  let code = from.value;
  if (code === "auto") code = text.trim() ? await detect(text, signal) : "";
  const memory = offerMemories(code);
  const exact = find("exact").checked;
  const asked = { source: code, target: to.value, terms: readGlossary(), exact, memory };
  if (known.size > MOST_KNOWN) known.clear();
  const parts = split(text).map((part) => {
    const key = JSON.stringify([part.text, asked]);
    if (!known.has(key)) known.set(key, { options: [], chosen: 0, complete: false });
    return { ...part, entry: known.get(key) };
  });
  job = { ...asked, text, parts };
  current = Math.max(0, Math.min(current, parts.length - 1));
  for (const id of ["source", "source-mirror"]) find(id).lang = code;
  for (const id of ["target", "target-mirror", "spoken", "choices"]) find(id).lang = to.value;
  await complete(parts.filter(({ entry }) => !entry.options.length), 1, signal);
  show();
  settled = !timer; // nothing has changed meanwhile
  find("spoken").textContent = target.value;
  if (!find("alternatives").hidden) await offer(signal);
}

// Ask for the `count` best translations of each part, and show first ones as they come.
async function complete(parts, count, signal) {
  const { source, target, terms, exact, memory } = job;
  // a pair that goes through a third language has no model of its own, and no alignments
  const alignments = models.some((model) => model.source === source && model.target === target);
  for (let at = 0; at < parts.length; at += BATCH) {
    const batch = parts.slice(at, at + BATCH);
    const text = batch.map((part) => part.text);
    const asked = { text, source, target, terms, n_best: count, alignments };
    if (memory) Object.assign(asked, { memory, adapt: true });
    if (exact) asked.glossary_mode = "exact";
    const { translations } = await call("v1/translate", asked, signal);
    batch.forEach(({ entry }, index) => {
      for (const option of [translations[index], ...(translations[index].alternatives ?? [])]) {
        if (!entry.options.some(({ text }) => text === option.text)) entry.options.push(option);
      }
      entry.complete = count > 1;
    });
    if (count === 1) show();
  }
}

// Show the chosen translations, up to the first part that has none yet.
function show() {
  const missing = job.parts.findIndex(({ entry }) => !entry.options.length);
  const parts = missing < 0 ? job.parts : job.parts.slice(0, missing);
  const chosen = parts.map(({ entry }) => entry.options[entry.chosen]);
  let [text, end] = ["", 0];
  const translated = parts.map((part, index) => {
    const gap = job.text.slice(end, part.start);
    const space = ENDS_WITHOUT_SPACE.test(text) ? "" : gap || " ";
    text += index === 0 || gap.includes("\n") ? gap : space;
    end = part.start + part.text.length;
    const start = text.length;
    text += chosen[index].text;
    return { start, text: chosen[index].text, words: chosen[index].target_words };
  });
  target.value = text;
  draw(panes[1], text, translated);
  if (source.value !== job.text) return;
  draw(panes[0], job.text, parts.map((part, i) => ({ ...part, words: chosen[i].source_words })));
}

// ---- translation memory
// Offer the memories of the languages, and return the name of the chosen one, or "".
function offerMemories(code) {
  const names = memories.filter(({ source, target }) => source === code && target === to.value);
  const select = find("memory");
  const options = [["", "None"], ...names.map(({ name }) => [name, name])];
  const wanted = kept[`memory:${code}:${to.value}`] ?? names[0]?.name ?? "";
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  select.value = names.some(({ name }) => name === wanted) ? wanted : "";
  find("memory-box").hidden = !names.length;
  return select.value;
}

// Who has no key yet sees none.
const listMemories = async () => { memories = await call("v1/memory").catch(() => []); };

async function useCorrection(signal) {
  const target = find("own").value.trim();
  const part = job.parts[current];
  if (!part || !target) return;
  const pair = { source: part.text, target, before: job.parts[current - 1]?.text ?? "" };
  await call("v1/memory", { memory: job.memory, pairs: [pair] }, signal);
  known.clear(); // similar sentences may have other translations now
  await translate(signal);
  showStatus("Kept in the translation memory.");
}

// ---- aligned words
// Put marks behind a text: parts are {start, text, words}, words [first, end) in characters.
function draw(pane, text, parts) {
  const root = document.createDocumentFragment();
  let at = 0;
  const copy = (parent, end) => {
    parent.append(text.slice(at, end));
    at = end;
  };
  const mark = (parent, end, part, word) => {
    const span = parent.appendChild(make("span"));
    pane.marks.push({ span, part, word, start: at, end });
    return span;
  };
  pane.marks = [];
  parts.forEach((each, part) => {
    const places = [each.start]; // where each character begins, in the UTF-16 units of JavaScript
    for (const character of each.text) places.push(places.at(-1) + character.length);
    copy(root, each.start);
    const sentence = mark(root, places.at(-1), part, null);
    (each.words ?? []).forEach(([first, end], word) => {
      copy(sentence, places[first]);
      copy(mark(sentence, places[end], part, word), places[end]);
    });
    copy(sentence, places.at(-1));
  });
  copy(root);
  root.append("\u200b"); // makes a line of a line break at the end
  pane.mirror.replaceChildren(root);
}

// Highlight a mark, the words that it is aligned with, and the sentences of both.
function highlight(pane, { part, word } = {}) {
  const entry = job.parts[part]?.entry;
  const links = entry?.options[entry.chosen]?.alignment ?? [];
  const side = panes.indexOf(pane);
  const linked = links.filter((link) => link[side] === word).map((link) => link[1 - side]);
  for (const { marks } of panes) {
    const words = [null, ...(marks === pane.marks ? [word] : linked)];
    for (const mark of marks) {
      mark.span.classList.toggle("on", mark.part === part && words.includes(mark.word));
    }
  }
}

for (const pane of panes) {
  pane.area.addEventListener("pointermove", ({ clientX, clientY }) => {
    const elements = document.elementsFromPoint(clientX, clientY);
    highlight(pane, pane.marks.findLast(({ span }) => elements.includes(span)));
  });
  for (const event of ["pointerleave", "blur"]) {
    pane.area.addEventListener(event, () => highlight(pane));
  }
}

document.addEventListener("selectionchange", () => {
  const pane = panes.find(({ area }) => area === document.activeElement);
  const caret = pane?.area.selectionStart;
  const mark = pane?.marks.findLast(({ start, end }) => start <= caret && caret <= end);
  if (!mark) return;
  highlight(pane, mark);
  const moved = mark.part !== current;
  current = mark.part;
  if (moved && !find("alternatives").hidden) openAlternatives(true);
});

function moveByWord(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const words = panes[1].marks.filter(({ word }) => word !== null);
  const stops = words.length ? words : panes[1].marks;
  const forward = (step > 0) === (getComputedStyle(target).direction === "ltr");
  const next = forward
    ? stops.find(({ start }) => start >= target.selectionEnd) ?? stops[0]
    : stops.findLast(({ start }) => start < target.selectionStart);
  if (next) target.setSelectionRange(next.start, next.end);
}

// ---- alternatives
// Offer the alternatives of the sentence in which the caret is.
async function offer(signal) {
  const part = job.parts[current];
  if (part && !part.entry.complete) await complete([part], CHOICES, signal);
  const entry = part?.entry ?? { options: [] };
  const match = entry.options[0]?.matches?.[0];
  const how = match?.type === "exact-match" ? "from the memory" : "like one in the memory";
  const percent = match ? ` (${how}: ${Math.floor(100 * match.score)} %)` : "";
  find("of").textContent = `Alternatives of the sentence at the cursor${percent}`;
  find("correction").hidden = !part || !job.memory;
  find("own").value = entry.options[entry.chosen]?.text ?? "";
  const buttons = entry.options.map(({ text }, place) => {
    const button = make("button", { dir: "auto", textContent: text });
    button.ariaPressed = String(place === entry.chosen);
    button.onclick = () => {
      for (const other of buttons) other.ariaPressed = String(other === button);
      entry.chosen = place;
      find("own").value = text;
      show();
    };
    return button;
  });
  find("choices").replaceChildren(...buttons);
}

function openAlternatives(open) {
  find("alternatives").hidden = !open;
  find("more").ariaExpanded = String(open);
  if (open) asNewest(settled ? offer : translate);
}

// ---- files
// Only XMLHttpRequest tells how much has been sent.
function upload(form, signal, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "v1/documents");
    for (const [name, value] of Object.entries(authorization())) {
      request.setRequestHeader(name, value);
    }
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => progress(loaded / total);
    request.onload = () => {
      if (request.status === 200) resolve(request.response);
      else reject(refusal(request.response, request.status));
    };
    request.onerror = () => reject(new Error(NO_ANSWER));
    request.onabort = () => reject(signal.reason);
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

// Ask for a document until it is translated, and return it.
async function follow({ document_id: id, document_key: key }, signal, progress) {
  const path = `v1/documents/${id}`;
  const headers = { "X-Document-Key": key };
  const end = () => ask(path, { method: "DELETE", headers }).catch(() => {}); // nobody waits for it
  signal.addEventListener("abort", end);
  for (let pause = 200; ; pause = Math.min(2 * pause, 2000)) {
    const found = await (await ask(path, { headers, signal })).json();
    if (found.status === "done") break;
    if (found.status === "error") throw new Error(found.error_message);
    progress(found);
    await new Promise((wake) => setTimeout(wake, pause));
  }
  const content = await (await ask(`${path}/result`, { headers, signal })).blob();
  signal.removeEventListener("abort", end);
  return content;
}

async function translateFile(file) {
  const item = find("files").appendChild(make("li"));
  const text = item.appendChild(make("span", { textContent: `${file.name}: being sent …` }));
  const bar = item.appendChild(make("progress", { max: 1, value: 0, ariaLabel: file.name }));
  const form = new FormData();
  form.set("file", file);
  form.set("source", from.value);
  form.set("target", to.value);
  // a pair that goes through a third language takes no terms
  const isDirect = from.value === "auto" || models.some(
    (model) => model.source === from.value && model.target === to.value);
  const terms = isDirect ? readGlossary() : [];
  if (terms.length) form.set("terms", JSON.stringify(terms));
  if (find("exact").checked) form.set("glossary_mode", "exact");
  const name = file.name.replace(/(\.[^.]*)?$/, `.${to.value}$1`);
  const { signal } = sending;
  const say = (words) => { // what has not changed is not read out again
    if (text.textContent !== words) text.textContent = words;
  };
  try {
    const sent = await upload(form, signal, (share) => { bar.value = share; });
    const content = await follow(sent, signal, ({ status, share, seconds_remaining: left }) => {
      bar.value = share;
      bar.title = left ? `about ${left} s` : "";
      say(`${file.name}: ${status === "queued" ? "waits for its turn" : "being translated"} …`);
    });
    const href = URL.createObjectURL(content);
    item.replaceChildren(make("a", { href, download: name, textContent: name }));
  } catch (error) {
    item.textContent = `${file.name}: ${signal.aborted ? "stopped" : error.message}`;
  }
}

function translateFiles(files) {
  find("file-box").open = true;
  for (const file of files) translateFile(file);
}

for (const type of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(type, (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", type === "dragover");
    if (type === "drop") translateFiles(event.dataTransfer.files);
  });
}

// ---- buttons, keys, theme, start
async function copyTranslation() {
  if (navigator.clipboard) await navigator.clipboard.writeText(target.value);
  else { // there is no clipboard without TLS
    target.select();
    document.execCommand("copy");
  }
  showStatus("Copied.");
}

function stop() {
  running.abort();
  sending.abort();
  sending = new AbortController();
  if (find("alternatives").contains(document.activeElement)) find("more").focus();
  openAlternatives(false);
}

const system = matchMedia("(prefers-color-scheme: dark)");
function setTheme() {
  const theme = kept.theme ?? (system.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  find("theme").ariaChecked = String(theme === "dark");
}

const on = (id, event, action) => find(id).addEventListener(event, action);
on("theme", "click", () => {
  kept.theme = find("theme").ariaChecked === "true" ? "light" : "dark";
  setTheme();
});
on("source", "input", (event) => textChanged(event.isComposing ? 1500 : undefined));
on("source-language", "change", () => { chooseLanguages(from.value, to.value); schedule(0); });
on("target-language", "change", () => { chooseTarget(to.value); schedule(0); });
on("target", "keydown", moveByWord);
on("swap", "click", swap);
on("clear", "click", () => { source.value = ""; textChanged(0); source.focus(); });
on("copy", "click", () => copyTranslation().catch(() => showError("The browser did not copy.")));
on("more", "click", () => openAlternatives(find("alternatives").hidden));
on("glossary", "input", () => {
  kept[`glossary:${to.value}`] = find("glossary").value;
  schedule();
});
on("exact", "change", () => {
  if (find("exact").checked) kept.exact = "exact";
  else delete kept.exact;
  schedule(0);
});
on("file", "change", ({ target }) => { translateFiles(target.files); target.value = ""; });
on("memory", "change", () => {
  kept[`memory:${job.source}:${to.value}`] = find("memory").value;
  schedule(0);
});
on("use", "click", () => asNewest(useCorrection));
on("key", "change", () => listMemories().then(() => schedule(0)));
system.addEventListener("change", setTheme);
document.addEventListener("keydown", (event) => {
  const control = event.ctrlKey || event.metaKey;
  if (event.key === "Escape") return stop();
  if (control && event.key === "Enter") asNewest(translate);
  else if (control && event.shiftKey && event.code === "KeyS") swap();
  else return;
  event.preventDefault();
});

setTheme();
asNewest(async () => {
  const paths = ["languages", "v1/models", "frontend/settings"];
  const answers = Promise.all(paths.map((path) => call(path)));
  [[languages, models, settings]] = await Promise.all([answers, listMemories()]);
  const { keyRequired, language, supportedFilesFormat: formats } = settings;
  find("key-field").hidden = !keyRequired;
  find("file").accept = formats.join();
  find("formats").textContent = formats.join(", ");
  chooseLanguages(kept.source ?? language.source.code, kept.target ?? language.target.code);
  textChanged(0);
});
