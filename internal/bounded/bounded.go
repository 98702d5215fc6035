// Package bounded takes numbers and times that others write: objects of the cluster that a stolen credential may write, and files
// that a thief of the agent's user may. Each has a least and a most; outside of them it counts as wrong.
// agent/numbers_test.go has a row for each function that reads one.
//
// Small and apart: services of every layer read such numbers. It refuses to know what they mean.
package bounded

import (
	"cmp"
	"fmt"
	"reflect"
	"time"
)

// In returns value, or otherwise where value is less than least or more than most; wrong says so.
func In[T cmp.Ordered](what string, value, least, most, otherwise T) (taken T, wrong string) {
	if value >= least && value <= most {
		return value, ""
	}
	return otherwise, fmt.Sprintf("%s is %v, which is not between %v and %v: it counts as %v", what, value, least, most, otherwise)
}

// Ahead is how far a stored time may be in the future. The longest pauses that the agent stores are of hours.
const Ahead = 24 * time.Hour

// Times sets each time in what v points to that is more than Ahead after now to now; wrong says how many were.
func Times(v any, now time.Time) (wrong string) {
	if n := walk(reflect.ValueOf(v), now); n > 0 {
		return fmt.Sprintf("%d times in it are more than %s in the future: they count as now", n, Ahead)
	}
	return ""
}

// walk goes through everything that JSON can fill.
func walk(v reflect.Value, now time.Time) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n += walk(v.Elem(), now)
		}
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			if v.CanSet() && t.Sub(now) > Ahead {
				v.Set(reflect.ValueOf(now))
				return 1
			}
			return 0
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += walk(v.Field(i), now)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			n += walk(v.Index(i), now)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			one := reflect.New(v.Type().Elem()).Elem()
			one.Set(v.MapIndex(key))
			if wrong := walk(one, now); wrong > 0 {
				v.SetMapIndex(key, one)
				n += wrong
			}
		}
	}
	return n
}
