package web_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/planted"
)

// TestSecretsAreMarked: whose session it is, and owners, see which lines hold secrets; with whom it is shared does not.
func TestSecretsAreMarked(t *testing.T) {
	s := newSite(t, nil)
	secret, _ := planted.Plant(rand.New(rand.NewPCG(1, 2)), planted.Kinds()["github"])
	line := func(i int, kind, content string) string {
		text := kit.Try(json.Marshal(content)).Must(t)
		return fmt.Sprintf(`{"type":%q,"uuid":"u%d","timestamp":"2026-11-20T08:00:0%dZ","message":{"role":%q,"content":%s}}`, kind, i, i, kind, text)
	}
	ana, ben := s.addUser(t, "ana", server.Member), s.addUser(t, "ben", server.Member)
	h := head("with-secret")
	s.putAs(t, ana, h, line(0, "user", "say hello"), line(1, "user", "use "+secret+" for it"),
		`{"type":"system","subtype":"info","content":"nothing"}`)
	share := server.Share{Owner: ana.ID, With: ben.ID, ProjectHash: "sha-of-shop", Project: "shop", Created: time.Now()}
	kit.Must(t, s.store.AddShare(t.Context(), share))
	for _, reader := range []struct {
		user server.User
		told bool
	}{{ana, true}, {s.owner, true}, {ben, false}} {
		s.login(t, s.addKey(t, reader.user, "k-"+reader.user.Name))
		page := s.get(t, sessionPath("with-secret", ""))
		tail := s.get(t, sessionPath("with-secret", "/tail", "after", "0"))
		mustHave(t, page, "say hello")
		if !reader.told {
			mustLack(t, page, "secret:", `id="secrets"`)
			mustLack(t, tail, "secret:")
			continue
		}
		mustHave(t, page, `id="secrets"`, "1 line on this page holds secrets", "line 2</a> (github", "secret: github",
			"ccship redact apply --forget-old --yes", "/entry/1")
		mustHave(t, tail, "secret: github")
		kit.Equal(t, "items are marked", strings.Count(page, `<span class="tag warn" title="This line holds a secret">`),
			1)
	}
}
