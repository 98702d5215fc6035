package agent

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"sort"
	"strings"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
)

// Prefix is that of every environment variable of the agent's own.
const Prefix = "AUTOSCALER"

// Variable is one environment variable of the configuration.
type Variable struct {
	Name    string // "AUTOSCALER_SCALING_UNNEEDED_FOR"
	Default string
	Type    string // Go's word for it
	bare    string // the name without prefix that envconfig would fall back to
}

var wordRegexp = regexp.MustCompile("([^A-Z]+|[A-Z]+[^A-Z]+|[A-Z]+)")
var acronymRegexp = regexp.MustCompile("([A-Z]+)([A-Z][^A-Z]+)")

// Variables lists every variable that Config reads, in the order of its fields, by
// envconfig's own naming rules (envconfig keeps its list to itself).
func Variables() []Variable {
	return variables(Prefix, reflect.TypeFor[Config]())
}

func variables(prefix string, t reflect.Type) []Variable {
	var out []Variable
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Tag.Get("ignored") == "true" {
			continue
		}
		key, bare := f.Name, strings.ToUpper(f.Tag.Get("envconfig"))
		if f.Tag.Get("split_words") == "true" {
			key = splitWords(f.Name)
		}
		if bare != "" {
			key = bare
		}
		name := strings.ToUpper(prefix + "_" + key)
		if f.Type.Kind() == reflect.Struct && !decodes(f.Type) {
			inner := name
			if f.Anonymous {
				inner = prefix
			}
			out = append(out, variables(inner, f.Type)...)
			continue
		}
		out = append(out, Variable{Name: name, Default: f.Tag.Get("default"), Type: f.Type.String(), bare: bare})
	}
	return out
}

func splitWords(name string) string {
	var words []string
	for _, w := range wordRegexp.FindAllStringSubmatch(name, -1) {
		if m := acronymRegexp.FindStringSubmatch(w[0]); len(m) == 3 {
			words = append(words, m[1], m[2])
		} else {
			words = append(words, w[0])
		}
	}
	return strings.Join(words, "_")
}

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
	for range len(known) + 1 {
		err := envconfig.Process(Prefix, c)
		var parse *envconfig.ParseError
		if !errors.As(err, &parse) {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, fmt.Errorf("%s is %q: %w (write %s)", parse.KeyName, parse.Value, parse.Err, remedy(parse.TypeName)))
		hide(parse.KeyName)
	}
	return errors.Join(errs...)
}

func remedy(typeName string) string {
	switch typeName {
	case "time.Duration":
		return "a time with its unit, for example 90s, 10m or 1h30m"
	case "bool":
		return "true or false"
	case "int", "int32", "int64":
		return "a whole number"
	case "float64":
		return "a number, for example 0.5"
	}
	return "a value as /etc/autoscaler-agent/agent.env describes it"
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
		near, distance := "", len(name)
		for _, v := range known {
			if d := groups.Edits(name, v.Name); d < distance {
				near, distance = v.Name, d
			}
		}
		if distance <= max(3, len(name)/4) {
			errs = append(errs, fmt.Errorf("%s is not a variable of this agent: did you mean %s?", name, near))
		} else {
			errs = append(errs, fmt.Errorf("%s is not a variable of this agent: remove it (autoscaler-agent check --print-env lists those that are)", name))
		}
	}
	return errors.Join(errs...)
}
