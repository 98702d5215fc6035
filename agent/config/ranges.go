package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A field says by its tags which values it allows: range:"1s.." (one second or more),
// range:"0..1", range:"0..<1" (less than 1), oneof:"priced,always,off". A number of the policy without
// a range is not negative; range:"any" allows all. No number is NaN or infinite. The services
// judge their own numbers. What depends on another setting is in Validate.

// outOfRange reports each value of c, of the variables listed, that its own tags do not
// allow.
func outOfRange(c reflect.Value, list []Variable, bad func(v Variable, value any, remedy string)) {
	for _, v := range list {
		value := c.FieldByIndex(v.field)
		if allowed := v.tag.Get("oneof"); allowed != "" {
			if known := strings.Split(allowed, ","); !slices.Contains(known, value.String()) {
				bad(v, strconv.Quote(value.String()), "use "+strings.Join(known, ", "))
			}
		}
		if value.CanFloat() && (math.IsNaN(value.Float()) || math.IsInf(value.Float(), 0)) {
			bad(v, value.Interface(), "use a number, for example "+v.Default)
			continue
		}
		if limits := limitsOf(v, value); limits != "" {
			least, most, _ := strings.Cut(limits, "..")
			most, below := strings.CutPrefix(most, "<")
			n := number(value)
			if n < bound(v, least) || most != "" && (n > bound(v, most) || below && n == bound(v, most)) {
				bad(v, value.Interface(), rangeRemedy(v, least, most, below))
			}
		}
	}
}

// limitsOf is the range of a field; empty: every value is allowed.
func limitsOf(v Variable, value reflect.Value) string {
	switch limits := v.tag.Get("range"); {
	case limits == "any", !value.CanInt() && !value.CanFloat():
		return ""
	case limits != "":
		return limits
	case !strings.HasPrefix(v.Name, Prefix+"_SCALING_"):
		return ""
	case v.Type == reflect.TypeFor[time.Duration]().String():
		return "0s.."
	}
	return "0.."
}

// number is a field's value to compare: durations count in nanoseconds.
func number(v reflect.Value) float64 {
	if v.CanFloat() {
		return v.Float()
	}
	return float64(v.Int())
}

// bound reads one end of a range as its field's type is written. The tags are constants of
// this program, and TestRangesHoldTheDefaults reads each.
func bound(v Variable, text string) float64 {
	if v.Type == reflect.TypeFor[time.Duration]().String() {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(fmt.Sprintf("range of %s: %v", v.Name, err))
		}
		return float64(d)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("range of %s: %v", v.Name, err))
	}
	return n
}

func rangeRemedy(v Variable, least, most string, below bool) string {
	switch {
	case most == "" && v.Type == reflect.TypeFor[time.Duration]().String():
		return "use " + least + " or more"
	case most == "":
		return "use " + least + " or more, for example " + v.Default
	}
	what, to := "number", " to "
	if v.Type == "float64" {
		what = "fraction"
	}
	if below {
		to = " to below "
	}
	return "use a " + what + " from " + least + to + most + ", for example " + v.Default
}
