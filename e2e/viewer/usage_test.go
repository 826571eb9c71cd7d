//go:build unix

package viewer_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// TestUsage: the charts show what the API counts, can be read without seeing them, and change with what is asked.
func TestUsage(t *testing.T) {
	b, s := reader(t)
	b.open("/usage?range=all")
	var api struct {
		Rows []struct{ Answers, Output int64 }
	}
	_, body, err := s.ask("GET", "/api/usage?by=model", s.key, "", nil)
	must(t, err)
	must(t, json.Unmarshal(body, &api))
	var answers int64
	for _, r := range api.Rows {
		answers += r.Answers
	}
	if answers == 0 {
		t.Fatalf("the API counts nothing: %s", body)
	}
	census := func() string {
		return eval[string](b, `[...document.querySelectorAll(".census div")].find((d) => d.innerText.startsWith("Responses")).querySelector("dd").innerText`)
	}
	if got := digits(census()); got != answers {
		t.Errorf("the page says %d answers, the API %d", got, answers)
	}
	for _, fault := range eval[[]string](b, `[...document.querySelectorAll("main svg:not([aria-hidden])")].filter((s) =>
		!s.querySelector("title")?.textContent || !s.querySelector("desc")?.textContent || s.getAttribute("role") !== "img").map((s) => s.outerHTML.slice(0, 200))`) {
		t.Errorf("a chart without role, title and description: %s", fault)
	}
	unfold(b)
	sum := eval[[]string](b, `[...document.querySelector("table.figures").querySelectorAll("tbody tr")].map((r) => r.children[1].innerText)`)
	var total int64
	for _, n := range sum {
		total += digits(n)
	}
	if total != answers {
		t.Errorf("the days of the table add up to %d answers, not %d", total, answers)
	}
	drawn := func() string { return eval[string](b, `document.querySelector("main svg").outerHTML`) }
	seen := map[string]string{drawn(): "at first"}
	for _, choice := range []string{"Output", "Project", "30 days"} {
		b.click(eval[string](b, `(() => { const a = [...document.querySelectorAll(".toolbar a")].find((a) => a.innerText === `+quoted(choice)+`); a.id = "chosen"; return "#chosen"; })()`))
		b.wait(choice+" is chosen", `document.readyState === "complete" && [...document.querySelectorAll(".toolbar [aria-current]")].some((a) => a.innerText === `+quoted(choice)+`)`)
		if before, same := seen[drawn()]; same {
			t.Errorf("%s shows the same chart as %s", choice, before)
		}
		seen[drawn()] = choice
	}
}

// digits is the number in a text such as "1,234".
func digits(s string) int64 {
	n, _ := strconv.ParseInt(strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s), 10, 64) // 0 is not what any caller wants
	return n
}
