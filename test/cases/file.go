package cases

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Case is the first document of a file, with the objects of the others.
type Case struct {
	Kind   string `json:"kind"` // "Case"
	Title  string `json:"title"`
	Report string `json:"report,omitempty"` // address of the public report
	// Groups are Auto Scaling groups of the emulated AWS.
	Groups []Group `json:"groups"`
	// Nodes are made before every object, in this order: node 0 first. Each is of an instance
	// that its group's desired capacity has launched.
	Nodes []Node `json:"nodes,omitempty"`
	// Env are settings of the agent, by name.
	Env map[string]string `json:"env,omitempty"`
	// GroupsFile is the agent's groups.yaml.
	GroupsFile map[string]any `json:"groupsfile,omitempty"`
	// Explain says what `explain` is asked: "pod web" (the first pod whose name begins so, one
	// that waits before one that is bound), "node 0" (by its number), "group small".
	Explain []string `json:"explain,omitempty"`
	// Pods prints every pod with its node.
	Pods  bool   `json:"pods,omitempty"`
	Steps []Step `json:"steps,omitempty"`
	Want  *Want  `json:"want,omitempty"`

	Name    string   `json:"-"` // of the file, without .yaml
	Objects []Object `json:"-"`
}

// Group is an Auto Scaling group and its launch template.
type Group struct {
	Name    string            `json:"name"`
	Type    string            `json:"type"`            // EC2 instance type
	Zones   []string          `json:"zones,omitempty"` // letters; none: a
	Min     int               `json:"min,omitempty"`
	Max     *int              `json:"max,omitempty"` // none: 10
	Desired int               `json:"desired,omitempty"`
	Tags    map[string]string `json:"tags,omitempty"`
	// Joins is how the Node of a machine looks that joins later; see Node.
	Joins *Node `json:"joins,omitempty"`
}

// Node is a Node that is made by hand. What is not said is as the machine's type has it.
type Node struct {
	Group  string                       `json:"group,omitempty"`
	Cap    map[string]resource.Quantity `json:"cap,omitempty"` // capacity and allocatable
	Labels map[string]*string           `json:"labels,omitempty"`
	Taints []corev1.Taint               `json:"taints,omitempty"`
	Anno   map[string]string            `json:"anno,omitempty"`
	// Volumes is how many volumes each CSI driver attaches: the Node's CSINode, which follows it.
	Volumes map[string]int32 `json:"volumes,omitempty"`
	// NotReady makes the Node's condition Ready false; ReadyFor is how long it has been true.
	NotReady bool            `json:"notready,omitempty"`
	ReadyFor metav1.Duration `json:"readyFor,omitzero"`
	// Phases are changes that come later, each a while after the Node was made.
	Phases []Phase `json:"phases,omitempty"`
}

// Phase is a change of a Node a while after it was made.
type Phase struct {
	After metav1.Duration `json:"after"`
	// Untaint removes taints by key; Labels and Cap are set; Ready makes the Node ready.
	Untaint []string                     `json:"untaint,omitempty"`
	Labels  map[string]string            `json:"labels,omitempty"`
	Cap     map[string]resource.Quantity `json:"cap,omitempty"`
	Ready   bool                         `json:"ready,omitempty"`
}

// Step is something that happens after the objects of the file are there. One step does its
// parts in the order of the fields; then kube-scheduler has its turn.
type Step struct {
	After metav1.Duration  `json:"after,omitzero"` // a pause before it
	Apply []map[string]any `json:"apply,omitempty"`
	Patch []Patch          `json:"patch,omitempty"`
	// Delete names objects of the case ("deployment web"), pods ("pod web": the first of that name)
	// and nodes ("node 0", "node of web"), whose machines end.
	Delete []string `json:"delete,omitempty"`
	Join   []Node   `json:"join,omitempty"` // machines that join: their groups' desired capacities are raised
	// Look runs plan and explain here too, before the next step, and compares.
	Look *Look `json:"look,omitempty"`
}

// Patch is a merge patch.
type Patch struct {
	What string         `json:"what"` // as in Delete
	With map[string]any `json:"with"`
}

// Look is what is expected of one plan and the explanations beside it.
type Look struct {
	// Plan are parts of what plan prints, Says of what plan, explain or their logs print, and
	// Never of what none of them prints.
	Plan  []string `json:"plan,omitempty"`
	Says  []string `json:"says,omitempty"`
	Never []string `json:"never,omitempty"`
	// Explain is, for an entry of Case.Explain, what its output contains.
	Explain map[string][]string `json:"explain,omitempty"`
	// Buys is what plan buys, by group; a group that is not named buys nothing.
	Buys *map[string]int `json:"buys,omitempty"`
	// Goes are nodes ("node 0", "node of web") that plan cordons, drains or deletes, or would once
	// they have been unneeded for long enough. Stays are nodes that it does not, GoesLeast is how
	// many of all go at least.
	Goes      []string `json:"goes,omitempty"`
	Stays     []string `json:"stays,omitempty"`
	GoesLeast int      `json:"goesLeast,omitempty"`
}

// Want is what is expected of the whole case. Look is of the first plan after all steps.
type Want struct {
	Look `json:",inline"`
	// Target is the desired capacity of groups when plan buys no more; a group that is not
	// named keeps its own.
	Target *map[string]int `json:"target,omitempty"`
	// Rounds is how many plans buy something before one buys nothing.
	Rounds *int `json:"rounds,omitempty"`
	// Bound is how many pods kube-scheduler has bound then, by the beginning of their names.
	Bound map[string]int `json:"bound,omitempty"`
	// Kept are workloads of which each pod is still the same one then.
	Kept []string `json:"kept,omitempty"`
	// Run lets the agent itself run for so long after the first plan, in place of the plans that
	// buy; what follows Look is compared when the time is over.
	Run metav1.Duration `json:"run,omitzero"`
}

// Object is a Kubernetes object with the stage at which it is made.
type Object struct {
	Stage int
	Body  unstructured.Unstructured
}

// Read reads a case. An unknown word is an error that names it.
func Read(file string) (Case, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Case{}, fmt.Errorf("read a case: %w", err)
	}
	c, err := parse(text)
	if err != nil {
		return Case{}, fmt.Errorf("read case %s: %w", file, err)
	}
	c.Name = strings.TrimSuffix(filepath.Base(file), ".yaml")
	return c, nil
}

func parse(text []byte) (Case, error) {
	var c Case
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 0; ; n++ {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c, fmt.Errorf("document %d: %w", n+1, err)
		}
		if n == 0 {
			if err := yaml.UnmarshalStrict(doc, &c); err != nil {
				return c, fmt.Errorf("the Case: %w%s", err, lineOf(doc, err))
			}
			continue
		}
		o, err := object(doc)
		if err != nil {
			return c, fmt.Errorf("document %d: %w", n+1, err)
		}
		if o.Body.Object != nil {
			c.Objects = append(c.Objects, o)
		}
	}
	slices.SortStableFunc(c.Objects, func(a, b Object) int { return a.Stage - b.Stage })
	return c, c.validate()
}

var unknownField = regexp.MustCompile(`unknown field "([^"]+)"|key "([^"]+)" already set`)

// lineOf says where the word is that a decoder refuses; the decoder itself does not.
func lineOf(doc []byte, err error) string {
	m := unknownField.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	field := m[1] + m[2]
	field = field[strings.LastIndexByte(field, '.')+1:]
	word := regexp.MustCompile(`(^|[\s{,-])["']?` + regexp.QuoteMeta(field) + `["']?\s*:`)
	for i, line := range strings.Split(string(doc), "\n") {
		if word.MatchString(line) {
			return fmt.Sprintf(" (line %d)", i+1)
		}
	}
	return ""
}

func object(doc []byte) (Object, error) {
	var o Object
	if err := yaml.UnmarshalStrict(doc, &o.Body.Object); err != nil {
		return o, err
	}
	if o.Body.Object == nil {
		return o, nil // only comments
	}
	return o, o.complete()
}

// complete takes the stage out of the body and refuses a body that is no object.
func (o *Object) complete() error {
	if stage, ok := o.Body.Object["stage"]; ok {
		n, whole := number(stage)
		if !whole || n < 0 {
			return fmt.Errorf("stage: %v is not a whole number from 0", stage)
		}
		o.Stage = n
		delete(o.Body.Object, "stage")
	}
	if o.Body.GetAPIVersion() == "" || o.Body.GetKind() == "" || o.Body.GetName() == "" {
		return errors.New("a Kubernetes object has apiVersion, kind and metadata.name")
	}
	return nil
}

func number(v any) (int, bool) {
	switch v := v.(type) {
	case int64:
		return int(v), true
	case float64:
		return int(v), v == float64(int(v))
	}
	return 0, false
}

func (c *Case) validate() error {
	if c.Kind != "Case" {
		return fmt.Errorf("kind: %q: the first document is a Case", c.Kind)
	}
	nodes := map[string]int{}
	for i, n := range c.Nodes {
		nodes[n.Group]++
		if !slices.ContainsFunc(c.Groups, func(g Group) bool { return g.Name == n.Group }) {
			return fmt.Errorf("nodes[%d].group: there is no group %q", i, n.Group)
		}
	}
	for i, g := range c.Groups {
		if g.Name == "" || g.Type == "" {
			return fmt.Errorf("groups[%d]: name and type are needed", i)
		}
		if nodes[g.Name] > g.Desired {
			return fmt.Errorf("groups[%d].desired: %d, and the file has %d nodes of it", i, g.Desired, nodes[g.Name])
		}
	}
	if c.Want != nil {
		if err := c.explained(c.Want.Look); err != nil {
			return fmt.Errorf("want.%w", err)
		}
	}
	for i, s := range c.Steps {
		if s.Look != nil {
			if err := c.explained(*s.Look); err != nil {
				return fmt.Errorf("steps[%d].look.%w", i, err)
			}
		}
	}
	for _, what := range c.Explain {
		if kind, name, ok := strings.Cut(what, " "); !ok || name == "" || !slices.Contains([]string{"pod", "node", "group"}, kind) {
			return fmt.Errorf("explain: %q: write pod NAME, node NUMBER or group NAME", what)
		}
	}
	return nil
}

// explained refuses an expectation of something that is not asked.
func (c *Case) explained(l Look) error {
	for what := range l.Explain {
		if !slices.Contains(c.Explain, what) {
			return fmt.Errorf("explain: %q is not in the case's own explain list", what)
		}
	}
	return nil
}
