package proof_test

import (
	"testing"

	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/e2e/kit"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript/redact"
)

// old is a plain server, and a server that nothing is masked for.
type old struct{ t testing.TB }

const plain = "http://plain.example"

func (o old) SpeaksExtension(dest string) bool { return dest != plain }

func (o old) Reader(dest string) *remote.Client {
	o.t.Errorf("%s is asked", dest)
	return nil
}

// For masks for every server but one.
func (o old) For(dest, _ string) *redact.Masker {
	if dest == "unmasked" {
		return nil
	}
	return kit.Try(redact.New(redact.Key{1})).Must(o.t)
}

// TestCannot names servers that speak only the base protocol, and leaves out those for which nothing is masked.
func TestCannot(t *testing.T) {
	t.Parallel()
	o := old{t}
	r := proof.Remasker{Servers: o, Masking: o, Machine: "m"}
	sum, err := r.Run(t.Context(), []string{plain, "unmasked"}, 0, true)
	kit.Check(t, err == nil && len(sum.Plain) == 1 && sum.Plain[0] == plain && sum.Total == 0, "%+v, %v", sum, err)
}
