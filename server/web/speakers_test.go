package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/google/go-cmp/cmp"
)

// A conversation of four speakers, with an answer to a question and an advice: on its page, in its outline, its page of
// prompts, exports and searches, and each of them as who they are.
func TestSpeakers(t *testing.T) {
	s := loggedIn(t)
	n := 0
	record := func(rest string) string {
		n++
		return fmt.Sprintf(`{"uuid":"u%d","parentUuid":"u%d","sessionId":"S","timestamp":"2026-11-18T11:%02d:00.000Z",%s}`, n, n-1, n, rest)
	}
	answer := func(text string) string {
		return record(fmt.Sprintf(`"type":"assistant","message":{"id":"m%d","model":"claude-opus-5","stop_reason":"end_turn","content":[`+
			`{"type":"text","text":%q}]}`, n, text))
	}
	lines := []string{
		record(`"type":"user","origin":{"kind":"human"},"message":{"content":"plan the checkout"}`),
		record(`"type":"assistant","message":{"id":"m","model":"claude-opus-5","content":[{"type":"server_tool_use","id":"adv","name":"advisor",` +
			`"input":{}},{"type":"advisor_tool_result","tool_use_id":"adv","content":{"type":"advisor_result","text":"use one provider"}}]}`),
		record(`"type":"assistant","message":{"id":"m2","model":"claude-opus-5","content":[{"type":"tool_use","id":"ask","name":"AskUserQuestion",` +
			`"input":{"questions":[{"question":"Which provider?","options":[]}]}}]}`),
		record(`"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"ask","content":"The user answered"}]},` +
			`"toolUseResult":{"questions":[{"question":"Which provider?"}],"answers":{"Which provider?":"neither of them"}}`),
		answer("Neither."),
		record(`"type":"user","isMeta":true,"origin":{"kind":"channel","server":"plugin:telegram:telegram"},"message":{"content":` +
			`"<channel source=\"plugin:telegram:telegram\">\ndeploy the shop\n</channel>"}`),
		answer("Deployed."),
		record(`"type":"user","isMeta":true,"origin":{"kind":"peer","name":"checkout"},"message":{"content":"Another Claude session sent a ` +
			`message:\n<cross-session-message from=\"x\" name=\"checkout\">stop editing</cross-session-message>"}`),
		answer("I stop."),
		record(`"type":"user","isMeta":true,"scheduledTaskId":"f","turnOrigin":"scheduled","message":{"content":"look at the deploy"}`),
		answer("Green."),
	}
	s.put(t, head(tourID), lines...)
	text := func(html string) string {
		return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]+>`).ReplaceAllString(html, " ")), " ")
	}
	var speakers []string
	page := s.get(t, "/sessions/"+tourID)
	for _, m := range regexp.MustCompile(`<span class="speaker">([^<]*)</span>`).FindAllStringSubmatch(page, -1) {
		speakers = append(speakers, m[1])
	}
	want := []string{"You", "Claude", "You", "Claude", "You via telegram", "Claude", "Message of session checkout", "Claude", "Scheduled task", "Claude"}
	kit.Same(t, "speakers", cmp.Diff(want, speakers))
	mustHave(t, text(page), "use one provider", "Which provider?", "neither of them")
	kit.Check(t, !strings.Contains(page, "no result"), "the advice is not the call's result")
	prompts := text(s.get(t, "/sessions/"+tourID+"/prompts"))
	mustHave(t, prompts, "plan the checkout", "neither of them", "deploy the shop", "via telegram")
	export := s.get(t, "/sessions/"+tourID+"/export?format=md")
	mustHave(t, export, "## You via telegram", "## Message of session checkout", "## Scheduled task", "neither of them", "use one provider")
	for query, found := range map[string]bool{
		"q=editing+kind:message": true, "q=editing+kind:prompt": false, "q=neither+kind:prompt": true, "q=deploy+kind:prompt": true,
		"q=provider+kind:result": true,
	} {
		kit.Equal(t, query+": found", strings.Contains(s.get(t, "/search?"+query), "/sessions/"+short(tourID)), found)
	}
}
