package derive

// inboxBell wakes one goroutine. It carries nothing: the woken goroutine checks what to do.
type inboxBell chan struct{}

func newInboxBell() inboxBell { return make(inboxBell, 1) }

// ring never blocks.
func (b inboxBell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
