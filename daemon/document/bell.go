package document

// bell wakes one goroutine. It carries nothing: the woken goroutine checks what to do.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

// ring never blocks.
func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
