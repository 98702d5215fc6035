package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
)

// Prefix is that of every environment variable of the agent's own.
const Prefix = "AUTOSCALER"

// Variable is one environment variable of the configuration.
type Variable struct {
	Name    string // "AUTOSCALER_SCALING_UNNEEDED_FOR"
	Default string
	About   string // one line: the tag desc of its field
	Type    string // Go's word for it
	bare    string // the name without prefix that envconfig would fall back to
	field   []int  // where it is in Config, for reflect
	typ     reflect.Type
	tag     reflect.StructTag
}

// Variables lists every variable that Config reads, in the order of its fields.
func Variables() []Variable { return allVariables() }

var allVariables = sync.OnceValue(func() []Variable { return variables(Prefix, reflect.TypeFor[Config](), nil) })

// variables lists the variables of the fields of t, which is at the field path of the whole.
func variables(prefix string, t reflect.Type, path []int) []Variable {
	var out []Variable
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Tag.Get("ignored") == "true" {
			continue
		}
		name, at := keyOf(prefix, f), append(slices.Clone(path), i)
		if f.Type.Kind() == reflect.Struct && !decodes(f.Type) {
			inner := name
			if f.Anonymous {
				inner = prefix
			}
			out = append(out, variables(inner, f.Type, at)...)
			continue
		}
		out = append(out, Variable{Name: name, Default: f.Tag.Get("default"), About: f.Tag.Get("desc"), Type: f.Type.String(), bare: strings.ToUpper(f.Tag.Get("envconfig")), field: at, typ: f.Type, tag: f.Tag})
	}
	return out
}

// keyOf is the name that envconfig gives to the variable of a field. envconfig does not
// export its naming rules; its error about a field that accepts no value names the
// variable.
func keyOf(prefix string, f reflect.StructField) string {
	probe := reflect.StructOf([]reflect.StructField{{Name: f.Name, Type: reflect.TypeFor[unreadable](), Tag: `default:"x" ` + f.Tag}})
	err := envconfig.Process(prefix, reflect.New(probe).Interface())
	parse, ok := errors.AsType[*envconfig.ParseError](err)
	if !ok {
		panic(fmt.Sprintf("envconfig names no variable for field %s: %v", f.Name, err))
	}
	return parse.KeyName
}

// unreadable is the type of a setting that accepts no value.
type unreadable struct{}

// Decode refuses every value.
func (*unreadable) Decode(string) error { return errors.New("no value is accepted") }

// decodes tells whether envconfig would hand the whole value to the type itself.
func decodes(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	for _, i := range []reflect.Type{reflect.TypeFor[envconfig.Decoder](), reflect.TypeFor[envconfig.Setter](), reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()} {
		if p.Implements(i) {
			return true
		}
	}
	return false
}

// noDecimal is a number that is octal, hexadecimal or binary to Go, or has underscores.
var noDecimal = regexp.MustCompile(`^[+-]?0[0-9A-Za-z]|_`)

// process fills c from the process's environment and reports every variable that is
// wrong, where envconfig stops at the first. Two of envconfig's habits are kept out:
// a field with an envconfig tag also reads the bare name ("TIMEOUT" of any other
// program), and an empty value is an error instead of the default.
func process(c *Config) error {
	restore := map[string]string{}
	hide := func(name string) {
		if v, ok := os.LookupEnv(name); ok {
			restore[name] = v
			_ = os.Unsetenv(name) // fails only for names that LookupEnv cannot find
		}
	}
	defer func() {
		for name, v := range restore {
			_ = os.Setenv(name, v) // the name was there before
		}
	}()
	known := Variables()
	for _, v := range known {
		if v.bare != "" {
			hide(v.bare)
		}
		if os.Getenv(v.Name) == "" {
			hide(v.Name)
		}
	}
	var errs []error
	for _, v := range known {
		// strconv would read 010 as 8.
		if value := os.Getenv(v.Name); noDecimal.MatchString(value) && strings.HasPrefix(strings.TrimPrefix(v.Type, "u"), "int") {
			errs = append(errs, fmt.Errorf("%s is %q: write a whole number, in decimal digits and without a zero before it", v.Name, value))
			hide(v.Name)
		}
	}
	for _, v := range known {
		value := os.Getenv(v.Name)
		switch {
		case value == "":
		case strings.TrimSpace(value) == "":
			errs = append(errs, fmt.Errorf("%s is blank: write its value, or take the line out", v.Name))
			hide(v.Name)
		case emptyElement(value):
			errs = append(errs, fmt.Errorf("%s is %q, which has an empty element: write what belongs there, or leave a comma out", v.Name, value))
			hide(v.Name)
		}
	}
	for range len(known) + 1 {
		err := envconfig.Process(Prefix, c)
		var parse *envconfig.ParseError
		if !errors.As(err, &parse) {
			trimElements(reflect.ValueOf(c).Elem(), known)
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, unparsed(parse))
		hide(parse.KeyName)
	}
	return errors.Join(errs...)
}

// emptyElement tells a list that has a comma too many. No setting has a value with one.
func emptyElement(value string) bool {
	return slices.ContainsFunc(strings.Split(value, ","), func(element string) bool { return strings.TrimSpace(element) == "" })
}

// trimElements leaves out the blanks behind the commas of a list, which envconfig keeps.
func trimElements(c reflect.Value, list []Variable) {
	for _, v := range list {
		if value := c.FieldByIndex(v.field); value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.String {
			for i := range value.Len() {
				value.Index(i).SetString(strings.TrimSpace(value.Index(i).String()))
			}
		}
	}
}

// unparsed says what to write in place of a value. What Go says of it helps only where the type
// is our own.
func unparsed(e *envconfig.ParseError) error {
	what := remedy(e.TypeName)
	if before, _, ok := strings.Cut(e.Value, "#"); ok && strings.TrimRight(before, " \t") != before {
		what += "; a comment needs a line of its own"
	}
	switch {
	case what == otherRemedy:
		return fmt.Errorf("%s is %q: %w (write %s)", e.KeyName, e.Value, e.Err, what)
	case errors.Is(e.Err, strconv.ErrRange), e.TypeName == "time.Duration" && isTime(e.Value):
		return fmt.Errorf("%s is %q: that is out of range; write %s", e.KeyName, e.Value, what)
	}
	return fmt.Errorf("%s is %q: write %s", e.KeyName, e.Value, what)
}

// isTime tells a time that is written well: where it cannot be read, it is too long.
func isTime(text string) bool {
	return regexp.MustCompile(`\A-?([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+\z`).MatchString(text)
}

const otherRemedy = "a value as /etc/autoscaler-agent/agent.env describes it"

func remedy(typeName string) string {
	switch typeName {
	case "time.Duration":
		return "a time with its unit, for example 90s, 10m or 1h30m"
	case "bool":
		return "true or false"
	case "int", "int32", "int64", "uint64":
		return "a whole number"
	case "float64":
		return "a number, for example 0.5"
	}
	return otherRemedy
}

// unknown reports variables of environ that carry the prefix and that nobody reads,
// each with the nearest name that somebody does.
func unknown(environ []string) error {
	known := Variables()
	names := make(map[string]bool, len(known))
	for _, v := range known {
		names[v.Name] = true
	}
	var errs []error
	sort.Strings(environ)
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, Prefix+"_") || names[name] {
			continue
		}
		if answer := AnswerToFlag(name); answer != "" {
			errs = append(errs, fmt.Errorf("%s %s", name, answer))
			continue
		}
		short := name[:min(len(name), 100)]
		near, distance := "", len(name)
		for _, v := range known {
			if d := groups.Edits(name, v.Name); d < distance {
				near, distance = v.Name, d
			}
		}
		if near != "" && distance <= max(3, len(name)/4) {
			errs = append(errs, fmt.Errorf("%s is not a variable of this agent: did you mean %s?", short, near))
		} else {
			errs = append(errs, fmt.Errorf("%s is not a variable of this agent: remove it (autoscaler-agent check --print-env lists the variables)", short))
		}
	}
	return errors.Join(groups.First(errs, func(rest int) error {
		return fmt.Errorf("and %d more names with %s_ are no variables of this agent", rest, Prefix)
	})...)
}
