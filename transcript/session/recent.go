package session

// recentMap is a map that drops the key set first when it holds more than bound.
type recentMap[V any] struct {
	bound int
	items []recentEntry[V] // a ring once it is full
	next  int              // the oldest entry then
	at    map[uint64]int
}

type recentEntry[V any] struct {
	key   uint64
	value V
}

func (r *recentMap[V]) get(key uint64) (value V, ok bool) {
	i, ok := r.at[key]
	if !ok {
		return value, false
	}
	return r.items[i].value, true
}

func (r *recentMap[V]) set(key uint64, value V) {
	if i, ok := r.at[key]; ok {
		r.items[i].value = value
		return
	}
	if r.at == nil {
		r.at = map[uint64]int{}
	}
	item := recentEntry[V]{key, value}
	if len(r.items) < r.bound {
		r.at[key] = len(r.items)
		r.items = append(r.items, item)
		return
	}
	delete(r.at, r.items[r.next].key)
	r.at[key] = r.next
	r.items[r.next] = item
	r.next = (r.next + 1) % r.bound
}

// layout encodes the oldest entry first.
func (r *recentMap[V]) layout(c *codec, each func(*V)) {
	ordered := r.items
	if !c.reading && r.next > 0 {
		ordered = append(append(make([]recentEntry[V], 0, len(r.items)), r.items[r.next:]...), r.items[:r.next]...)
	}
	list(c, &ordered, r.bound, func(i *recentEntry[V]) { c.fixed(&i.key); each(&i.value) })
	if !c.reading {
		return
	}
	r.items, r.next, r.at = ordered, 0, make(map[uint64]int, len(ordered))
	for i, item := range r.items {
		r.at[item.key] = i
	}
}
