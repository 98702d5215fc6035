package round

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// manyShapes is how many different demands on a node's shape are remembered at least.
const manyShapes = 1024

// classIndex holds the facts about the pod classes, by index. It lives across rounds and
// is brought up to date when Snapshot.Classes changes.
type classIndex struct {
	classes        []cluster.PodClass // as last seen
	space          *fit.Dimensions
	Rank           []int32          // by size, the largest first; equal sizes share a rank
	shape          []int32          // classes with equal demands on a node's shape share a number
	Equivalent     []int32          // classes of equal rank and shape share a number
	Representative []int32          // a class of each kind
	shapeIDs       map[string]int32 // the numbers of shape, by what is demanded
	needs          *startNeeds      // of all classes; another one when they have changed
	gen            int              // of the space: another one makes all vectors and verdicts new
}

// update takes in the classes of a round and returns which of them are not what they
// were; nil when none is.
func (b *classIndex) update(rows []cluster.PodClass) (changed []bool) {
	if b.space != nil && Same(&rows, &b.classes) {
		return nil
	}
	for i := range rows {
		if i >= len(b.classes) || !Same(&rows[i], &b.classes[i]) && !reflect.DeepEqual(&rows[i], &b.classes[i]) {
			if changed == nil {
				changed = make([]bool, len(rows))
			}
			changed[i] = true
		}
	}
	same := changed == nil && len(rows) == len(b.classes) && b.space != nil
	b.classes = rows
	if same {
		return nil
	}
	space := fit.NewDimensions(rows)
	if b.space == nil || !space.Same(b.space) {
		b.gen++
	}
	b.space, b.needs = space, startNeedsOf(rows)
	b.shapes()
	b.sort()
	return changed
}

// shapes numbers the demands on a node's shape.
func (b *classIndex) shapes() {
	if len(b.shapeIDs) > 2*len(b.classes)+manyShapes { // most belong to classes that are gone
		b.shapeIDs, b.gen = nil, b.gen+1
	}
	if b.shapeIDs == nil {
		b.shapeIDs = make(map[string]int32)
	}
	b.shape = make([]int32, len(b.classes))
	for i := range b.classes {
		key := shapeKey(&b.classes[i])
		n, ok := b.shapeIDs[key]
		if !ok {
			n = int32(len(b.shapeIDs))
			b.shapeIDs[key] = n
		}
		b.shape[i] = n
	}
}

// shapeKey writes down what the shape filters F0 to F4 read of a class.
func shapeKey(c *cluster.PodClass) string {
	return string(cluster.AppendStrings(cluster.AppendNodeDemands(nil, c), c.NotUnderstood))
}

// sort ranks the classes by size.
func (b *classIndex) sort() {
	order := make([]int32, len(b.classes))
	for i := range order {
		order[i] = int32(i)
	}
	bySize := func(x, y int32) int { return slices.Compare(b.space.Class(int(y)), b.space.Class(int(x))) }
	slices.SortFunc(order, func(x, y int32) int { return cmp.Or(bySize(x, y), cmp.Compare(b.shape[x], b.shape[y])) })
	b.Rank, b.Equivalent, b.Representative = make([]int32, len(b.classes)), make([]int32, len(b.classes)), nil
	rank, kind := int32(0), int32(0)
	for k, i := range order {
		if k > 0 {
			before := order[k-1]
			bigger := bySize(before, i) != 0
			if bigger {
				rank++
			}
			if bigger || b.shape[before] != b.shape[i] {
				kind++
			}
		}
		b.Rank[i], b.Equivalent[i] = rank, kind
		if int(kind) == len(b.Representative) {
			b.Representative = append(b.Representative, i)
		}
	}
}
