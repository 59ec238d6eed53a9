// What an auditor of web pages looks for (Lighthouse, WCAG 2.2 AA), as far as a script can see it: returns a line for each thing that is wrong.
const wrong = [];
const say = (element, what) => {
  const id = element.id ? `#${element.id}` : element.className && element.className.baseVal === undefined ? `.${element.className}` : '';
  wrong.push(`${element.tagName.toLowerCase()}${id}: ${what}: ${(element.textContent || '').trim().slice(0, 40)}`);
};
const visible = element => {
  if (!element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) return false;
  const box = element.getBoundingClientRect();
  // What is for screen readers alone is one pixel large.
  return box.width > 1 && box.height > 1;
};

// The document.
if (!document.documentElement.lang) wrong.push('no language');
if (!document.title.trim()) wrong.push('no title');
const viewport = document.querySelector('meta[name=viewport]')?.content || '';
if (!viewport.includes('width=device-width') || /user-scalable=no|maximum-scale/.test(viewport)) wrong.push(`viewport: ${viewport}`);
for (const landmark of ['main', 'h1']) {
  if (document.querySelectorAll(landmark).length !== 1) wrong.push(`not one ${landmark}`);
}
if (!document.querySelector('[aria-live]')) wrong.push('no live region');
if (document.documentElement.scrollWidth > window.innerWidth) wrong.push('it scrolls sideways');
const ids = new Set();
for (const element of document.querySelectorAll('[id]')) {
  if (ids.has(element.id)) say(element, 'its id is another one\'s');
  ids.add(element.id);
}
for (const name of ['aria-labelledby', 'aria-describedby', 'aria-controls']) {
  for (const element of document.querySelectorAll(`[${name}]`)) {
    for (const id of element.getAttribute(name).split(' ')) if (!ids.has(id)) say(element, `${name} leads nowhere: ${id}`);
  }
}

// Headings lead down one by one.
let level = 0;
for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) say(heading, `a level ${next} after ${level}`);
  level = next;
}

// Whoever cannot see it is told what it is.
const named = element => {
  const by = (element.getAttribute('aria-labelledby') || '').split(' ').map(id => document.getElementById(id)?.textContent || '').join('');
  return (by || element.getAttribute('aria-label') || element.getAttribute('alt') || element.getAttribute('title') || element.textContent || '').trim();
};
for (const element of document.querySelectorAll('a, button, summary, input, [role=img], [role=slider], [role=group], [tabindex="0"], img, nav')) {
  if (element.closest('[aria-hidden=true]')) continue;
  if (!named(element)) say(element, 'it has no name');
}
for (const element of document.querySelectorAll('[tabindex]')) if (element.tabIndex > 0) say(element, 'it changes the order of the tab key');
for (const cell of document.querySelectorAll('th')) if (!cell.scope) say(cell, 'a heading of a table without scope');
for (const element of document.querySelectorAll('[aria-hidden=true] a, [aria-hidden=true] button')) say(element, 'hidden from some, and can be reached');

// Fingers find it: 24 px, but for links within text.
for (const element of document.querySelectorAll('button, summary, [role=slider], nav a')) {
  if (!visible(element)) continue;
  const box = element.getBoundingClientRect();
  if (box.width < 24 || box.height < 24) say(element, `${Math.round(box.width)} by ${Math.round(box.height)} px`);
}

// Text stands out from what is behind it.
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const pixel = color => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
};
const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
const light = ([r, g, b]) => {
  const part = value => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const behind = element => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const style = getComputedStyle(at);
    // A picture or a hatch: what it looks like there is not known here.
    if (style.backgroundImage !== 'none') return null;
    const color = pixel(style.backgroundColor);
    layers.push(color);
    if (color[3] === 1) break;
  }
  const page = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
  return layers.reduceRight((below, layer) => over(layer, below), page);
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (!texts.currentNode.textContent.trim() || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(element.tagName) || !visible(element)) continue;
  const back = behind(element);
  if (!back) continue;
  const style = getComputedStyle(element);
  const fore = over(pixel(element instanceof SVGElement ? style.fill : style.color), back);
  const [one, other] = [light(fore), light(back)].sort((a, b) => b - a);
  const contrast = (one + 0.05) / (other + 0.05);
  const size = parseFloat(style.fontSize);
  const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
  if (contrast < least - 0.01) say(element, `a contrast of ${contrast.toFixed(2)}, not ${least}`);
}
return wrong;
