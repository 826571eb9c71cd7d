//go:build unix

package viewer_test

import "testing"

// TestSaveView goes the way of a reader on a phone who filters the list, saves it, comes back to it and removes it. The
// member of the gallery sees no session of others, and keeps views of their own.
func TestSaveView(t *testing.T) {
	s := needGallery(t)
	b := newTab(t, s.url)
	b.login(gallery.other)
	b.size(390, 844)
	b.open("/?view=failed")
	b.wait("nobody else's views are there", `!document.querySelector("[aria-label='Saved views']")`)
	b.click(".saved .menu summary")
	b.wait("the whole form is in sight", `((r) => r.left >= 0 && r.right <= 390 && r.width > 150)(`+one(".saved .drop")+`.getBoundingClientRect())`)
	b.fill(".saved [name=name]", "What went wrong")
	b.wait("the view is saved", `location.search === "?view=failed" && document.querySelector(".saved [aria-current]")?.innerText === "What went wrong"`)
	b.open("/search")
	b.wait("a search lists it too", `document.querySelector(".saved a")?.innerText === "What went wrong"`)
	b.click(".saved a")
	b.wait("it leads back", `location.pathname === "/" && location.search === "?view=failed"`)
	b.wait("the page is there", `document.querySelector(".saved [name=remove]")`)
	b.click(".saved [name=remove]")
	b.wait("it is removed, and the list stays", `location.search === "?view=failed" && !document.querySelector(".saved [aria-current]") && document.querySelector(".saved .menu")`)
}
