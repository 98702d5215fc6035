package round

import (
	"reflect"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// identical tells that two values are the same without looking behind a pointer, a
// slice or a map: same scalars, same backing arrays. It follows structs field by field,
// so that a field which is added tomorrow counts too. Of two values that are equal and
// not identical it says false, which costs a round and never its result.
func identical(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !identical(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		return a.Len() == b.Len() && a.IsNil() == b.IsNil() && (a.Len() == 0 || a.Pointer() == b.Pointer())
	case reflect.Map:
		return a.Len() == b.Len() && (a.Len() == 0 || a.Pointer() == b.Pointer())
	case reflect.Pointer, reflect.UnsafePointer, reflect.Func, reflect.Chan:
		return a.Pointer() == b.Pointer()
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return a.Uint() == b.Uint()
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float()
	}
	return false // an interface or something new: never the same
}

// Same is identical for two values of one type behind pointers, which keeps them off
// the heap.
func Same[T any](a, b *T) bool {
	return identical(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
}

// SamePolicy looks behind slices too: a Policy is small, and made anew for every round.
func SamePolicy(a, b *decision.Policy) bool { return Same(a, b) || reflect.DeepEqual(a, b) }

// SameSnapshot tells that a Snapshot shows what the one before it showed, time and the
// moment of the clouds' reads aside.
func SameSnapshot(a, b *cluster.Snapshot) bool {
	x, y := *a, *b
	x.Now, x.Groups, y.Groups = y.Now, nil, nil
	return len(a.Groups) == len(b.Groups) && Same(&x, &y) && sameGroups(a.Groups, b.Groups)
}

func sameGroups(a, b []cluster.NodeGroup) bool {
	for i := range a {
		x := a[i]
		x.ReadAt, x.NamesReadAt = b[i].ReadAt, b[i].NamesReadAt
		if !Same(&x, &b[i]) {
			return false
		}
	}
	return true
}
