// Package yaml11 reads YAML as PyYAML does, with which cloud-init reads it: yes is a boolean, 0644
// is octal, a key that comes twice has its last value, and one text holds one document. It refuses
// to convert: a value stays a node with its line.
package yaml11

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

// Error is a mistake with its line.
type Error struct {
	Line int
	Text string
}

func (e Error) Error() string { return e.Text }

var yamlLine = lazyregexp.New(`line (\d+): (.*)`)

// Load reads one document; nil is an empty one.
func Load(text string) (*yaml.Node, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	d := yaml.NewDecoder(strings.NewReader(text))
	var doc, second yaml.Node
	if err := d.Decode(&doc); err == io.EOF {
		return nil, nil
	} else if err != nil {
		return nil, located(err)
	}
	if err := d.Decode(&second); err == nil {
		return nil, Error{second.Line, "holds a second document: join the two without ---"}
	} else if err != io.EOF {
		return nil, located(err)
	}
	root := Target(doc.Content[0])
	if err := readable(root, map[*yaml.Node]bool{}); err != nil {
		return nil, err
	}
	if root.Kind == yaml.ScalarNode && Kind(root) == "null" {
		return nil, nil
	}
	return root, nil
}

func located(err error) error {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return Error{n, m[2]}
	}
	return Error{0, strings.TrimPrefix(err.Error(), "yaml: ")}
}

// Target follows aliases.
func Target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

var knownTags = []string{"", "!", "!!null", "!!bool", "!!int", "!!float", "!!binary", "!!timestamp", "!!omap", "!!pairs", "!!set", "!!str", "!!seq", "!!map", "!!merge", "!!value"}

// readable finds what parses and has no value in Python: a mapping or list as a key, most often
// braces of a template without quotes, and tags of a program's own.
func readable(n *yaml.Node, seen map[*yaml.Node]bool) error {
	n = Target(n)
	if seen[n] {
		return nil
	}
	seen[n] = true
	if !slices.Contains(knownTags, n.ShortTag()) {
		return Error{n.Line, fmt.Sprintf("the tag %s has no meaning", n.Tag)}
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && Target(c).Kind != yaml.ScalarNode {
			return Error{c.Line, "a key is a mapping or a list: put braces of a template in quotes"}
		}
		if err := readable(c, seen); err != nil {
			return err
		}
	}
	return nil
}

// Field is one of a mapping.
type Field struct {
	Name       string
	Key, Value *yaml.Node
}

// Limits of << within <<, whose aliases could name more fields than any memory holds.
const (
	mostNested = 20
	mostMerged = 10_000
)

// mapping gathers the fields of a mapping.
type mapping struct {
	kept, lost []Field
	index      map[string]int // of kept, by name
	merged     int            // mappings read
}

// Fields are those of a mapping with << resolved, and the values that later ones of the same
// name replace. The work grows with the fields.
func Fields(n *yaml.Node) (kept, lost []Field) {
	m := mapping{index: map[string]int{}}
	m.read(n, 0)
	return m.kept, m.lost
}

func (m *mapping) read(n *yaml.Node, depth int) {
	n = Target(n)
	if m.merged++; depth > mostNested || m.merged > mostMerged {
		return
	}
	if n.Kind == yaml.SequenceNode && depth > 0 {
		for _, c := range slices.Backward(n.Content) {
			m.read(c, depth+1)
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	own := map[string]bool{}
	for _, merge := range []bool{true, false} { // a mapping's own fields replace those of <<
		for i := 0; i < len(n.Content); i += 2 {
			key := Target(n.Content[i])
			switch {
			case (key.Value == "<<" && key.Style == 0) != merge:
			case merge:
				m.read(n.Content[i+1], depth+1)
			default:
				m.add(Field{key.Value, n.Content[i], Target(n.Content[i+1])}, own[key.Value])
				own[key.Value] = true
			}
		}
	}
}

func (m *mapping) add(f Field, again bool) {
	i, ok := m.index[f.Name]
	if !ok {
		m.index[f.Name] = len(m.kept)
		m.kept = append(m.kept, f)
		return
	}
	if again {
		m.lost = append(m.lost, m.kept[i])
	}
	m.kept[i] = f
}

// Get is a field of a mapping; nil: there is none.
func Get(n *yaml.Node, name string) *yaml.Node {
	kept, _ := Fields(n)
	for _, f := range kept {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

var (
	yamlBool  = lazyregexp.New(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	yamlInt   = lazyregexp.New(`^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	yamlFloat = lazyregexp.New(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	yamlDate  = lazyregexp.New(`^\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?)?$`)
)

// Kind is the type that PyYAML gives a scalar: str, null, bool, int, float, timestamp,
// binary; "mapping" or "list" of what is no scalar.
func Kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return strings.TrimLeft(n.ShortTag(), "!")
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return "str"
	}
	switch v := n.Value; {
	case v == "" || v == "~" || v == "null" || v == "Null" || v == "NULL":
		return "null"
	case yamlBool.MatchString(v):
		return "bool"
	case yamlInt.MatchString(v):
		return "int"
	case yamlFloat.MatchString(v):
		return "float"
	case yamlDate.MatchString(v):
		return "timestamp"
	}
	return "str"
}

// Describe names the type in a sentence.
func Describe(n *yaml.Node) string {
	kind := Kind(n)
	if text, ok := map[string]string{"str": "text", "null": "empty", "int": "a number", "float": "a number", "bool": "a boolean", "timestamp": "a date", "binary": "binary"}[kind]; ok {
		return text
	}
	return "a " + kind
}

// IsTrue is Python's reading of a switch.
func IsTrue(n *yaml.Node) bool {
	if n == nil {
		return false
	}
	return slices.Contains([]string{"true", "1", "on", "yes"}, strings.ToLower(n.Value))
}

// Number is the value of an int.
func Number(text string) (*big.Int, error) {
	text = strings.ReplaceAll(text, "_", "")
	if !strings.Contains(text, ":") {
		if n, ok := new(big.Int).SetString(text, 0); ok {
			return n, nil
		}
		return nil, errors.New("not a number")
	}
	total := new(big.Int)
	for part := range strings.SplitSeq(strings.TrimLeft(text, "+-"), ":") {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil {
			return nil, err
		}
		total.Add(total.Mul(total, big.NewInt(60)), big.NewInt(n))
	}
	if strings.HasPrefix(text, "-") {
		total.Neg(total)
	}
	return total, nil
}

// Word is what Python's str makes of a scalar.
func Word(n *yaml.Node) string {
	switch Kind(n) {
	case "null":
		return "None"
	case "bool":
		if IsTrue(n) {
			return "True"
		}
		return "False"
	case "int":
		if v, err := Number(n.Value); err == nil {
			return v.String()
		}
	case "float":
		if v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64); err == nil {
			if text := strconv.FormatFloat(v, 'f', -1, 64); strings.Contains(text, ".") {
				return text
			} else {
				return text + ".0"
			}
		}
	}
	return n.Value
}
