package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/form"
)

// Each field says by its tags what it allows, and TestEverySettingIsChecked refuses one that says
// nothing. What depends on another setting is in Validate.
//
//	range:"1s..1h"              a number or a time from one to the other; "0..<1" leaves 1 out, "any" allows all
//	zero:"never"                zero as well, which means never
//	unit:"GiB"                  what the number counts, where bytes are a likely mistake
//	oneof:"priced,always,off"   one of these words
//	form:"domain"               a form of package form, or of ownForms
//	pattern:"[0-9]+" write:"…"  an expression for the whole value, and what to write in its place
//	most:"2"                    so many elements of a list, of which each has the form
//
// A bool has nothing else to say, and a type with a method Decode judges for itself.

// ownForms are those that the lists of other packages make.
var ownForms = map[string]func(text string) string{
	"providers": func(text string) string {
		if _, err := all.Split(text); err != nil {
			return err.Error() + "; several are separated by commas"
		}
		return ""
	},
	"expanders": func(text string) string {
		if len(plan.UnknownExpanders(text)) > 0 {
			return "use " + strings.Join(plan.Expanders(), ", ") + ", or several of them, comma-separated"
		}
		return ""
	},
	"name template": func(text string) string {
		if fault := rules.TemplateFault(text); fault != "" {
			return "write for example {{node}}.corp.example: " + fault
		}
		return ""
	},
}

// judge reports each value of c, of the variables listed, that its own tags do not allow.
func judge(c reflect.Value, list []Variable, bad func(v Variable, value, remedy string)) {
	for _, v := range list {
		value := c.FieldByIndex(v.field)
		switch {
		case value.CanInt(), value.CanFloat():
			if remedy := v.number(value); remedy != "" {
				bad(v, fmt.Sprint(value.Interface()), remedy)
			}
		case value.Kind() == reflect.Slice && !decodes(v.typ):
			if most, _ := strconv.Atoi(v.tag.Get("most")); most > 0 && value.Len() > most {
				bad(v, fmt.Sprintf("a list of %d", value.Len()), fmt.Sprintf("use %d at most", most))
			}
			for i := range value.Len() {
				v.word(value.Index(i).String(), bad)
			}
		case value.Kind() == reflect.String && value.String() != "":
			v.word(value.String(), bad)
		}
	}
}

// faultOf is what to write in place of a text in a variable; empty: the variable takes it.
func faultOf(name, text string) (remedy string) {
	for _, v := range Variables() {
		if v.Name == name {
			v.word(text, func(_ Variable, _, r string) { remedy = r })
		}
	}
	return remedy
}

// word judges one text.
func (v Variable) word(text string, bad func(v Variable, value, remedy string)) {
	remedy := ""
	switch name := v.tag.Get("form"); {
	case v.tag.Get("oneof") != "":
		if known := strings.Split(v.tag.Get("oneof"), ","); !slices.Contains(known, text) {
			remedy = "use " + strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1]
		}
	case v.tag.Get("pattern") != "":
		if !regexp.MustCompile(`\A(?:` + v.tag.Get("pattern") + `)\z`).MatchString(text) {
			remedy = "write " + v.tag.Get("write")
		}
	case ownForms[name] != nil:
		remedy = ownForms[name](text)
	case form.Known(name):
		if remedy = form.Judge(name, text); remedy != "" {
			remedy = "write " + remedy
		}
	}
	if remedy != "" {
		bad(v, strconv.Quote(text), remedy)
	}
}

// number judges a number or a time. NaN is in no range.
func (v Variable) number(value reflect.Value) string {
	limits := v.tag.Get("range")
	least, most, _ := strings.Cut(limits, "..")
	most, below := strings.CutPrefix(most, "<")
	n := 0.0 // durations count in nanoseconds
	if value.CanFloat() {
		n = value.Float()
	} else {
		n = float64(value.Int())
	}
	zero := v.tag.Get("zero")
	switch {
	case limits == "", limits == "any", zero != "" && n == 0:
		return ""
	case n >= v.bound(least) && (most == "" || n < v.bound(most) || !below && n == v.bound(most)):
		return ""
	case most == "":
		return "use " + least + " or more" + v.example()
	case v.tag.Get("unit") == "GiB" && n > v.bound(most):
		return fmt.Sprintf("the unit is GiB: write %d for so many bytes", max(int64(n)>>30, 1))
	}
	what, to := "a number", " to "
	switch {
	case v.isTime():
		what = "a time"
	case v.Type == "float64" && most == "1":
		what = "a fraction"
	}
	if below {
		to = " to below "
	}
	if zero != "" {
		what = v.bare0() + " (" + zero + "), or " + what
	}
	return "use " + what + " from " + least + to + most + v.example()
}

// bare0 is zero as it is written.
func (v Variable) bare0() string {
	if v.isTime() {
		return "0s"
	}
	return "0"
}

func (v Variable) example() string {
	if n, err := strconv.ParseFloat(v.Default, 64); v.Default == "" || v.Default == v.bare0() || err == nil && n == 0 {
		return ""
	}
	return ", for example " + v.Default
}

func (v Variable) isTime() bool { return v.typ == reflect.TypeFor[time.Duration]() }

// bound reads one end of a range as its field's type is written. The tags are constants of
// this program, and TestEverySettingIsChecked reads each.
func (v Variable) bound(text string) float64 {
	if v.isTime() {
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
