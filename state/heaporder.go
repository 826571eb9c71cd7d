package state

import "container/heap"

// walkHeap calls visit with the indexes of a heap of n elements, the least element first, until visit returns false.
// less compares two indexes. The children of an index become candidates when it is visited: sorting all would cost too
// much when the first one is taken.
func walkHeap(n int, less func(i, j int) bool, visit func(place int) bool) {
	c := candidates{n: n, less: less}
	c.offer(0)
	for len(c.places) > 0 {
		place := heap.Pop(&c).(int)
		if !visit(place) {
			return
		}
		c.offer(2*place + 1)
		c.offer(2*place + 2)
	}
}

// candidates is a heap of indexes in another heap.
type candidates struct {
	n      int
	less   func(i, j int) bool
	places []int
}

func (c *candidates) offer(place int) {
	if place < c.n {
		heap.Push(c, place)
	}
}

func (c *candidates) Len() int           { return len(c.places) }
func (c *candidates) Less(i, j int) bool { return c.less(c.places[i], c.places[j]) }
func (c *candidates) Swap(i, j int)      { c.places[i], c.places[j] = c.places[j], c.places[i] }
func (c *candidates) Push(v any)         { c.places = append(c.places, v.(int)) }
func (c *candidates) Pop() any {
	last := c.places[len(c.places)-1]
	c.places = c.places[:len(c.places)-1]
	return last
}
