package outbox

import (
	"errors"

	"github.com/ccship/ccship/protocol"
)

// Owner of the queue learns from a drainer what concerns more than the current batch, and opens files for it. dest is
// the key of the drainer's destination. Methods are called from goroutines of Run, several at once.
type Owner interface {
	// Announced is called when a server that accepted entries without the extension begins to speak it. Everything it
	// accepted before is settled by then. Late answers may cause a second call.
	Announced(dest string)
	// Forgotten is called when the server answers that it has forgotten a stream. What was sent is settled by then.
	// stream may be that of a transcript's blobs.
	Forgotten(stream uint64)
	// Accepts is called when the server begins to accept artifact kinds. again: it accepted lines before, so artifacts
	// may have been withheld. It returns nil once its effects are durable. It is called again after an error and after
	// a crash: the batches whose answer announced the kinds are still queued then.
	Accepts(dest string, kinds Kinds, again bool) error
	// LinkRequests is called when the server announces pending link requests. It must not block.
	LinkRequests(dest string)
	// OutOfStep is called when the server refuses to store because it has other lines than this queue continues. Nothing
	// is sent to it (of the stream, if why names one) until InStep or StreamInStep is called. It must not block.
	OutOfStep(dest string, why protocol.Refusal)
	// OpenBlob opens the file of a blob whose content is not in the queue. cwd is that of its stream. After any error the
	// blob is given up.
	OpenBlob(dest, cwd string, ref *BlobRef) (Content, error)
}

// noOwner is the owner of a drainer without one.
type noOwner struct{}

func (noOwner) Announced(string)                                  {}
func (noOwner) Forgotten(uint64)                                  {}
func (noOwner) Accepts(string, Kinds, bool) error                 { return nil }
func (noOwner) LinkRequests(string)                               {}
func (noOwner) OutOfStep(string, protocol.Refusal)                {}
func (noOwner) OpenBlob(_, _ string, _ *BlobRef) (Content, error) { return nil, errNoOwner }

var errNoOwner = errors.New("blobs cannot be opened: the drainer has no owner")
