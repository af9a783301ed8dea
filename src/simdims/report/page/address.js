// What is open is in the page's address, so that Back goes back and a link leads to a dimension or an item.

export function addressOf(kind, place) {
  return `#${kind}-${kind === "dimension" ? place + 1 : place}`;
}

// {kind, place} of the address, or null where it names no dimension and no item of these data.
export function openedBy(hash, n_components, n_items) {
  const match = /^#(dimension|item)-(\d{1,9})$/.exec(hash);
  if (!match) return null;
  const place = Number(match[2]) - (match[1] === "dimension" ? 1 : 0);
  const many = match[1] === "dimension" ? n_components : n_items;
  return place >= 0 && place < many ? { kind: match[1], place } : null;
}

export function go(kind, place) {
  location.hash = addressOf(kind, place);
}

// Take the name of what was open out of the address, without a jump of the page.
export function clearAddress() {
  history.pushState(null, "", location.href.split("#")[0]);
}
