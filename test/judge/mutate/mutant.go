package mutate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Target is a package whose checks are to be removed one at a time.
type Target struct {
	// Package is the directory, from the root of the product's module.
	Package string
	// Stories are tests of agent/plan, as in go test -run, that are asked where the package's own tests notice nothing: the
	// rounds that are written down there say what the steps of the engine decide. Empty: none.
	Stories string
	// Files of the package whose conditions are broken.
	Files []string
	// Lists are package-level slices of checks; each element is left out once.
	Lists []string
	// Skip are tests, as in go test -skip, that take seconds and watch bounds rather than
	// checks. A mutant that only they would notice survives.
	Skip string
	// Run are the only tests to run, as in go test -run; empty: all. A mutant that they do
	// not notice may still be noticed by others.
	Run string
	// Hangs is how long the tests of one mutant may take, where mutants of a loop never end; 0: two minutes.
	Hangs time.Duration
}

// stories are the tests of agent/plan that play rounds which are written down.
const stories = "^(TestStories|TestFoundWorlds|TestFoundRounds|TestExplain(Pod|Node|Group))$"

// Targets are the packages that decide over a cluster's trust and its Nodes, packages of the engine, and the schedules of budgets.
var Targets = []Target{
	{Package: "csrsigner/rules", Files: []string{"decide.go", "names.go", "witness.go", "self.go", "sources.go", "joinrules.go", "parse.go", "clip.go"},
		Lists: []string{"checks", "joinChecks"}},
	{Package: "csrsigner", Files: []string{"facts.go"}, Skip: "^(TestR17Flood|TestJoinFlood)$"},
	{Package: "nodecleaner/reaper", Files: []string{"rules.go", "decide.go", "candidate.go", "sight.go", "breaker.go", "asked.go", "identity.go", "lease.go"},
		Lists: []string{"eligibleChecks", "proofChecks", "breakerChecks", "liveChecks"}, Skip: "^(TestChaos|TestChaosFindsVictims|TestHonestWorlds)$"},
	{Package: "agent/plan/internal/growth", Files: []string{"holds.go", "limits.go", "purchase.go", "readlag.go", "totals.go", "balancesets.go"}, Lists: []string{"holds"}, Stories: stories},
	{Package: "internal/schedule", Files: []string{"schedule.go"}, Skip: "^TestAgainstTheLibrary$", Hangs: 10 * time.Second},
	{Package: "agent/plan/internal/disruption", Files: []string{"budgets.go", "dear.go", "drift.go", "health.go", "reasons.go", "rollout.go", "spares.go", "status.go"}},
	{Package: "agent/fit", Files: []string{"affinity.go", "compile.go", "connect.go", "constraintclasses.go", "dimensions.go", "eligibility.go", "filters.go", "matching.go", "pack.go", "pagecounter.go", "reshape.go", "selector.go", "spread.go", "state.go", "terms.go", "undo.go", "volumes.go", "zones.go"}},
	{Package: "agent/binpack", Files: []string{"value.go", "vector.go"}},
	{Package: "agent/plan/internal/round", Files: []string{"backoff.go", "beingremoved.go", "bookkeeping.go", "classindex.go", "daemonmemory.go", "daemonpods.go", "daemonshares.go", "demand.go", "filtercache.go", "fitstate.go", "groups.go", "headroom.go", "ignored.go", "instanceindex.go", "instances.go", "nodefacts.go", "nodes.go", "nodestart.go", "similargroups.go", "starting.go", "startneeds.go", "state.go", "totals.go", "unchanged.go", "upcoming.go", "utilisation.go"}},
	{Package: "agent/plan/internal/purchase", Files: []string{"contents.go", "queue.go", "reasons.go", "reserved.go", "size.go"}, Hangs: 10 * time.Second},
	{Package: "agent/plan/internal/scaleup", Files: []string{"burst.go", "overtaken.go", "refusals.go", "zones.go"}, Skip: "^(TestPurchaseKeepsItsBudget|TestNewMachinesAreBought|TestChains|TestBudgetIsTold|TestDimensionsAreBounded)$"},
	{Package: "agent/plan/internal/consolidation", Files: []string{"avoid.go", "candidates.go", "consolidation.go", "worth.go"}},
	{Package: "agent/plan/internal/scaledown", Files: []string{"board.go", "budget.go", "consolidate.go", "drainorder.go", "drainplan.go", "interruption.go", "planner.go", "reap.go", "relocation.go", "removals.go", "replacement.go", "scaledown.go", "softtaint.go", "spread.go", "takeback.go", "utilisation.go"}, Lists: []string{"blockers"}, Hangs: 20 * time.Second},
	{Package: "agent/plan/internal/schedsim", Files: []string{"bind.go", "compile.go", "score.go", "sim.go", "view.go"}, Skip: "^TestBindCostsSetsAndNotNodes$", Hangs: 60 * time.Second},
}

// Kind is what is done to the source.
type Kind string

// The kinds of mutants.
const (
	Drop   Kind = "drop"   // an element of a list of checks is left out
	Never  Kind = "never"  // a condition, or one side of an ||, never holds
	Always Kind = "always" // a condition, or one side of an &&, always holds
	Edge   Kind = "edge"   // a comparison is moved by one: > becomes >=, >= becomes >
)

// Mutant is one broken check.
type Mutant struct {
	Number int
	Kind   Kind
	File   string
	Line   int
	Func   string // or the list
	Source string // the condition, or the element
	Nth    int    // of those with the same text in the function, from 1
}

// Key names a mutant without its line, so that it outlives edits elsewhere.
func (m Mutant) Key() string {
	key := fmt.Sprintf("%s %s: %s %s", m.File, m.Func, m.Kind, m.Source)
	if m.Nth > 1 {
		key += fmt.Sprintf(" (%d)", m.Nth)
	}
	return key
}

// String is for people.
func (m Mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s %s", m.File, m.Line, m.Func, m.Kind, m.Source)
}

// mutated is a package with all of its mutants built in.
type mutated struct {
	name    string            // of the Go package
	mutants []Mutant          // by number, from 1
	files   map[string][]byte // by name
}

// mutateDir reads the target's files in dir and builds every mutant in.
func mutateDir(dir string, t Target) (*mutated, error) {
	out := &mutated{files: map[string][]byte{}}
	var lists []string
	for _, name := range t.Files {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", t.Package, err)
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", t.Package, err)
		}
		out.name = file.Name.Name
		e := &editor{out: out, set: set, name: name, source: source}
		for _, d := range file.Decls {
			lists = append(lists, e.declaration(d, t.Lists)...)
		}
		out.files[name] = e.apply()
	}
	out.files["zz_mutant.go"] = []byte(fmt.Sprintf(runtimeSource, out.name, strings.Join(lists, "\n\t")))
	return out, nil
}

// runtimeSource picks the one mutant that lives in this run.
const runtimeSource = `package %s

import (
	"os"
	"strconv"
)

var liveMutant = func() int { n, _ := strconv.Atoi(os.Getenv("LIVE_MUTANT")); return n }()

func mutant(n int) bool { return n == liveMutant }

func init() {
	%s
}
`

// editor wraps conditions of one file. Insertions keep every line where it was.
type editor struct {
	out    *mutated
	set    *token.FileSet
	name   string
	source []byte
	fn     string
	edits  []edit
}

type edit struct {
	at   int
	text string
}

func (e *editor) offset(p token.Pos) int { return e.set.Position(p).Offset }
func (e *editor) text(n ast.Node) string {
	return string(e.source[e.offset(n.Pos()):e.offset(n.End())])
}

// add makes a mutant of a node.
func (e *editor) add(kind Kind, n ast.Node, source string) int {
	m := Mutant{Number: len(e.out.mutants) + 1, Kind: kind, File: e.name, Line: e.set.Position(n.Pos()).Line,
		Func: e.fn, Source: strings.Join(strings.Fields(source), " "), Nth: 1}
	for _, o := range e.out.mutants {
		if o.Kind == m.Kind && o.File == m.File && o.Func == m.Func && o.Source == m.Source {
			m.Nth++
		}
	}
	e.out.mutants = append(e.out.mutants, m)
	return m.Number
}

// wrap puts text around a node; an outer wrap is asked for before its inner ones.
func (e *editor) wrap(n ast.Node, before, after string) {
	e.edits = append(e.edits, edit{e.offset(n.Pos()), before})
	// What closes first was opened last: the later suffix goes in front.
	at := e.offset(n.End())
	i := slices.IndexFunc(e.edits, func(o edit) bool { return o.at == at })
	if i < 0 {
		i = len(e.edits)
	}
	e.edits = slices.Insert(e.edits, i, edit{at, after})
}

func (e *editor) apply() []byte {
	slices.SortStableFunc(e.edits, func(a, b edit) int { return a.at - b.at })
	var out []byte
	last := 0
	for _, x := range e.edits {
		out = append(append(out, e.source[last:x.at]...), x.text...)
		last = x.at
	}
	return append(out, e.source[last:]...)
}

// declaration breaks what a declaration holds, and returns statements that leave
// elements of lists out.
func (e *editor) declaration(d ast.Decl, lists []string) (drops []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		e.fn = d.Name.Name
		if d.Body != nil {
			e.body(d.Body)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || d.Tok != token.VAR || len(v.Names) != 1 || len(v.Values) != 1 {
				continue
			}
			e.fn = v.Names[0].Name
			if lit, ok := v.Values[0].(*ast.CompositeLit); ok && slices.Contains(lists, e.fn) {
				for i, element := range lit.Elts {
					n := e.add(Drop, element, e.text(element))
					drops = append(drops, fmt.Sprintf("if mutant(%d) { %s = append(%s[:%d:%d], %s[%d:]...) }", n, e.fn, e.fn, i, i, e.fn, i+1))
				}
			}
			ast.Inspect(v.Values[0], func(n ast.Node) bool {
				if f, ok := n.(*ast.FuncLit); ok {
					e.body(f.Body)
					return false
				}
				return true
			})
		}
	}
	return drops
}

// body breaks the conditions of a function: those of if and of switch without a tag,
// and the operands of && and || wherever they stand. Loops keep their conditions: a
// loop that never ends tells nothing.
func (e *editor) body(b *ast.BlockStmt) {
	ast.Inspect(b, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			if n.Init != nil || n.Cond != nil || n.Post != nil {
				e.body(n.Body)
				return false
			}
		case *ast.IfStmt:
			e.condition(n.Cond, Never, Always)
		case *ast.SwitchStmt:
			if n.Tag != nil {
				return true
			}
			for _, c := range n.Body.List {
				for _, x := range c.(*ast.CaseClause).List {
					e.condition(x, Never, Always)
				}
			}
		case *ast.BinaryExpr:
			e.binary(n)
		}
		return true
	})
}

func (e *editor) condition(x ast.Expr, kinds ...Kind) {
	for _, kind := range kinds {
		switch n := e.add(kind, x, e.text(x)); kind {
		case Never:
			e.wrap(x, fmt.Sprintf("(!mutant(%d) && (", n), "))")
		case Always:
			e.wrap(x, fmt.Sprintf("(mutant(%d) || (", n), "))")
		}
	}
}

func (e *editor) binary(b *ast.BinaryExpr) {
	switch b.Op {
	case token.LOR:
		e.condition(b.X, Never)
		e.condition(b.Y, Never)
	case token.LAND:
		e.condition(b.X, Always)
		e.condition(b.Y, Always)
	case token.GTR, token.LSS:
		n := e.add(Edge, b, e.text(b))
		e.wrap(b, "(", fmt.Sprintf(" || mutant(%d) && (%s) == (%s))", n, e.text(b.X), e.text(b.Y)))
	case token.GEQ, token.LEQ:
		n := e.add(Edge, b, e.text(b))
		e.wrap(b, "(", fmt.Sprintf(" && !(mutant(%d) && (%s) == (%s)))", n, e.text(b.X), e.text(b.Y)))
	}
}
