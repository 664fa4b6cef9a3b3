/* The switch between versions. versions.json lists those that are published, side by side in folders
   of their own. A newer list on the server replaces the one that this version was built with. */
function showVersions(box, versions) {
  const select = box.querySelector("select");
  box.hidden = versions.length < 2;
  select.replaceChildren(...versions.map(({ name, folder }) => new Option(name, folder)));
  const here = new URL(box.dataset.root || ".", location.href).pathname.split("/").at(-2);
  select.value = versions.some(({ folder }) => folder === here) ? here : versions[0].folder;
  select.onchange = () => {
    location.href = `${box.dataset.root || "./"}../${select.value}/index.html`;
  };
}

addEventListener("DOMContentLoaded", async () => {
  const box = document.querySelector(".versions");
  if (!box) return;
  showVersions(box, JSON.parse(box.dataset.versions));
  if (location.protocol === "file:") return; // a page on a disk may not read other files
  try {
    const answer = await fetch(`${box.dataset.root || "./"}../versions.json`);
    if (answer.ok) showVersions(box, await answer.json());
  } catch {
    // without a newer list the one of this version stays
  }
});
