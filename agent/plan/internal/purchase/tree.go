package purchase

// tree finds the first of many places with enough cpu and memory: a binary tree of the most that the places below a node have. A search costs
// the logarithm of the places for each that it looks at.
type tree struct {
	cpu, memory []int64
	leaves      int
}

// newTree is the tree of so many rooms.
func newTree(n int, room func(i int) []int64) *tree {
	t := &tree{}
	t.grow(max(n, 64))
	for i := range n {
		r := room(i)
		t.cpu[t.leaves+i], t.memory[t.leaves+i] = r[0], r[1]
	}
	for i := t.leaves - 1; i > 0; i-- {
		t.raise(i)
	}
	return t
}

// grow makes room for n rooms at least.
func (t *tree) grow(n int) {
	old := *t
	for t.leaves = 1; t.leaves < n; t.leaves *= 2 {
	}
	t.cpu, t.memory = make([]int64, 2*t.leaves), make([]int64, 2*t.leaves)
	for i := range t.cpu {
		t.cpu[i], t.memory[i] = -1, -1
	}
	copy(t.cpu[t.leaves:], old.cpu[old.leaves:])
	copy(t.memory[t.leaves:], old.memory[old.leaves:])
	for i := t.leaves - 1; i > 0 && old.leaves > 0; i-- {
		t.raise(i)
	}
}

// raise takes over what the two below a node have.
func (t *tree) raise(i int) {
	t.cpu[i], t.memory[i] = max(t.cpu[2*i], t.cpu[2*i+1]), max(t.memory[2*i], t.memory[2*i+1])
}

// set says how much room a place has.
func (t *tree) set(i int, room []int64) {
	if i >= t.leaves {
		t.grow(2 * (i + 1))
	}
	i += t.leaves
	t.cpu[i], t.memory[i] = room[0], room[1]
	for i /= 2; i > 0; i /= 2 {
		t.raise(i)
	}
}

// next is the first place from one on that has enough; -1: none has.
func (t *tree) next(from int, size []int64) int {
	return t.find(1, 0, t.leaves, from, size[0], size[1])
}

func (t *tree) find(at, low, n, from int, cpu, memory int64) int {
	if low+n <= from || t.cpu[at] < cpu || t.memory[at] < memory {
		return -1
	}
	if n == 1 {
		return low
	}
	if i := t.find(2*at, low, n/2, from, cpu, memory); i >= 0 {
		return i
	}
	return t.find(2*at+1, low+n/2, n/2, from, cpu, memory)
}
