package remote

import (
	"net/http"
	"sync"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/protocol"
)

// Of returns a client that takes answers of one database only: several may answer in turn at one address, and what one
// has says nothing about the other. "": the one that answers first. Servers that never name their database are not
// distinguished apart; an answer without a name among answers with one is refused.
func (c *Client) Of(store string) *Client {
	one := *c
	one.store = &pin{store: store}
	return &one
}

// pin is the database that a client takes answers of.
type pin struct {
	mu      sync.Mutex
	store   string // guarded by mu; "" before the first answer that names one
	named   bool   // guarded by mu; an answer named its database
	unnamed bool   // guarded by mu; an answer to a valid key did not
}

// check refuses an answer of another database.
func (p *pin) check(answer *http.Response) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	store := answer.Header.Get(protocol.HeaderStore)
	if store == "" {
		if answer.StatusCode > 299 { // of a proxy, or to a key that is not valid
			return nil
		}
		if p.unnamed = true; p.named {
			return otherStore(p.store, "one without a name")
		}
		return nil
	}
	if p.store == "" {
		p.store = store
	}
	if store != p.store {
		return otherStore(p.store, store)
	}
	if p.named = true; p.unnamed {
		return otherStore(p.store, "one without a name")
	}
	return nil
}

func otherStore(asked, answered string) error {
	return control.NewError(CodeOtherStore, "two databases answer in turn: "+asked+" and "+answered,
		"let one database answer at this address; check the load balancer and server_url")
}
