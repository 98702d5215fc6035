package agent

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const house = "github.com/autoscaler-agent/autoscaler-agent/"

// layer is what the packages under a path may import. The longest path that is a
// prefix of a package's holds.
type layer struct {
	house     []string // packages of the product; "*" is all of them
	pure      bool     // standard library only, less net, os, clock, context and chance
	clockless bool     // the clock is not read, whatever is imported
	banned    []string // packages of the world, by prefix
}

// layers is DESIGN section 2 as a table.
var layers = map[string]layer{
	"agent/cluster":                      {pure: true},
	"internal/schedule":                  {clockless: true, house: []string{"agent/cluster"}, banned: []string{"k8s.io/", "net", "os", "context", "sync"}},
	"agent/decision":                     {pure: true, house: []string{"agent/cluster"}},
	"agent/fit":                          {pure: true, house: []string{"agent/cluster", "agent/fit/devices", "agent/fit/labelindex"}},
	"agent/fit/devices":                  {pure: true, house: []string{"agent/cluster"}},
	"agent/fit/labelindex":               {pure: true, house: []string{"agent/cluster"}},
	"agent/binpack":                      {pure: true},
	"agent/plan/internal/round":          {pure: true, house: []string{"agent/cluster", "agent/decision", "agent/binpack", "agent/fit", "agent/fit/labelindex"}},
	"agent/plan/internal/growth":         {pure: true, house: []string{"agent/cluster", "agent/decision", "agent/binpack", "agent/plan/internal/round"}},
	"agent/plan/internal/purchase":       {pure: true, house: []string{"agent/cluster", "agent/binpack", "agent/fit", "agent/plan/internal/growth", "agent/plan/internal/round", "agent/plan/internal/schedsim"}},
	"agent/plan/internal/scaleup":        {pure: true, house: []string{"agent/cluster", "agent/decision", "agent/binpack", "agent/fit", "agent/plan/internal/growth", "agent/plan/internal/round", "agent/plan/internal/purchase"}},
	"agent/plan/internal/disruption":     {pure: true, house: []string{"agent/cluster", "agent/decision", "internal/schedule", "agent/plan/internal/growth", "agent/plan/internal/round"}},
	"agent/plan/internal/consolidation":  {pure: true, house: []string{"agent/plan/internal/disruption", "agent/cluster", "agent/decision", "agent/binpack", "agent/fit", "agent/plan/internal/growth", "agent/plan/internal/round"}},
	"agent/plan/internal/schedsim":       {pure: true, house: []string{"agent/cluster", "agent/binpack", "agent/fit"}},
	"agent/plan/internal/scaledown":      {pure: true, house: []string{"agent/plan/internal/consolidation", "agent/plan/internal/disruption", "agent/cluster", "agent/decision", "agent/binpack", "agent/fit", "agent/plan/internal/growth", "agent/plan/internal/round", "agent/plan/internal/schedsim"}},
	"agent/plan/internal/explain":        {pure: true, house: []string{"agent/plan/internal/disruption", "agent/cluster", "agent/decision", "agent/binpack", "agent/fit", "agent/plan/internal/growth", "agent/plan/internal/round", "agent/plan/internal/scaleup", "agent/plan/internal/scaledown"}},
	"agent/plan":                         {pure: true, house: []string{"agent/cluster", "agent/decision", "agent/plan/internal/*"}},
	"agent/plan/plantest":                {house: []string{"agent/cluster", "agent/plan/internal/schedsim"}, banned: []string{"k8s.io/", "net", "os"}},
	"userdata":                           {pure: true, house: []string{"agent/cluster"}},
	"userdata/upgrade":                   {pure: true, house: []string{"agent/cluster", "userdata"}},
	"userdata/leader":                    {clockless: true, house: []string{"userdata"}, banned: []string{"k8s.io/", "net/http", "os", "context"}},
	"userdata/lint":                      {clockless: true, house: []string{"agent/cluster", "userdata", "userdata/lint/internal/*", "internal/lazyregexp", "internal/nodespec"}, banned: []string{"k8s.io/", "net/http", "os", "context"}},
	"userdata/lint/internal/jinja":       {pure: true, house: []string{"internal/lazyregexp"}},
	"userdata/lint/internal/mail":        {pure: true, house: []string{"internal/lazyregexp"}},
	"userdata/lint/internal/yaml11":      {clockless: true, house: []string{"internal/lazyregexp"}, banned: []string{"k8s.io/", "net", "os", "context"}},
	"internal/bounded":                   {pure: true},
	"internal/bootid":                    {banned: []string{"k8s.io/", "net"}},
	"internal/heartbeat":                 {banned: []string{"k8s.io/", "net"}},
	"internal/flight":                    {house: []string{"agent/cluster"}, banned: []string{"k8s.io/", "net"}},
	"internal/atomicfile":                {house: []string{"internal/bounded"}, banned: []string{"k8s.io/", "net"}},
	"internal/textfile":                  {banned: []string{"k8s.io/", "net"}},
	"internal/servingcert":               {banned: []string{"k8s.io/client-go/kubernetes"}},
	"internal/version":                   {banned: []string{"k8s.io/", "net", "os"}},
	"internal/quantity":                  {banned: []string{"k8s.io/api/", "k8s.io/client-go", "net"}},
	"internal/nodespec":                  {house: []string{"agent/cluster", "internal/quantity"}, banned: []string{"k8s.io/api/", "k8s.io/client-go", "net"}},
	"internal/resourcelist":              {house: []string{"agent/cluster"}, banned: []string{"k8s.io/client-go", "net"}},
	"agent/groups":                       {house: []string{"agent/cluster", "internal/schedule", "internal/nodespec", "agent/provider", "internal/quantity", "internal/textfile"}, banned: []string{"k8s.io/client-go", "net"}},
	"agent/provider":                     {house: []string{"agent/cluster", "internal/schedule"}, banned: []string{"k8s.io/", "net"}},
	"agent/provider/wrap":                {house: []string{"agent/cluster", "agent/provider"}, banned: []string{"k8s.io/", "net"}},
	"agent/provider/all":                 {house: []string{"agent/cluster", "agent/provider", "agent/provider/*", "agent/provider/asg/pool", "agent/provider/nova/section", "userdata/upgrade"}, banned: []string{"k8s.io/"}},
	"agent/provider/asg":                 {house: []string{"agent/cluster", "agent/provider", "agent/provider/asg/*", "userdata/upgrade"}, banned: []string{"k8s.io/"}},
	"agent/provider/asg/iampolicy":       {house: []string{"agent/provider/asg", "agent/provider/asg/awsapi"}, banned: []string{"k8s.io/"}},
	"agent/provider/asg/pool":            {house: []string{"agent/provider/strict", "internal/lazyregexp"}, banned: []string{"k8s.io/", "net", "os"}},
	"agent/provider/strict":              {banned: []string{"k8s.io/", "net", "os"}},
	"agent/provider/asg/price":           {house: []string{"agent/cluster", "agent/provider", "agent/provider/asg/awsapi"}, banned: []string{"k8s.io/", "os"}},
	"agent/provider/asg/template":        {house: []string{"agent/cluster", "internal/nodespec", "agent/provider", "agent/provider/asg/awsapi", "agent/provider/asg/price", "internal/quantity", "userdata", "userdata/upgrade"}, banned: []string{"k8s.io/"}},
	"agent/provider/asg/refresh":         {house: []string{"agent/cluster", "agent/provider", "agent/provider/asg/awsapi"}, banned: []string{"k8s.io/", "os"}},
	"agent/provider/asg/lifecycle":       {house: []string{"agent/cluster"}, banned: []string{"k8s.io/", "net"}},
	"agent/provider/asg/awsapi":          {house: []string{"agent/cluster", "agent/provider"}, banned: []string{"k8s.io/"}},
	"agent/provider/openstack":           {house: []string{"agent/cluster", "agent/provider"}, banned: []string{"k8s.io/"}},
	"agent/provider/nova":                {house: []string{"agent/cluster", "internal/nodespec", "agent/provider", "agent/provider/openstack", "agent/provider/nova/section", "userdata", "userdata/upgrade"}, banned: []string{"k8s.io/"}},
	"agent/provider/nova/section":        {house: []string{"internal/lazyregexp", "agent/cluster", "agent/provider/openstack", "agent/provider/strict"}, banned: []string{"k8s.io/", "net"}},
	"agent/provider/magnum":              {house: []string{"agent/cluster", "internal/nodespec", "agent/provider", "agent/provider/openstack", "internal/quantity"}, banned: []string{"k8s.io/client-go"}},
	"agent/provider/clusterapi":          {house: []string{"agent/cluster", "internal/nodespec", "agent/provider", "agent/provider/clusterapi/capi", "internal/quantity"}},
	"agent/provider/clusterapi/capi":     {house: []string{"agent/cluster"}, banned: []string{"k8s.io/client-go/kubernetes/typed"}},
	"agent/provider/externalgrpc":        {house: []string{"agent/cluster", "internal/nodespec", "agent/provider", "agent/provider/externalgrpc/protos", "internal/resourcelist"}, banned: []string{"k8s.io/client-go"}}, // a template is a core/v1 Node
	"agent/provider/externalgrpc/protos": {banned: []string{"k8s.io/"}},                                                                                                                                                  // generated
	"internal/testing/fake":              {house: []string{"agent/cluster", "agent/provider", "agent/provider/wrap"}, banned: []string{"k8s.io/"}},
	"internal/testing/providertest":      {house: []string{"agent/cluster", "agent/provider"}, banned: []string{"k8s.io/"}},
	"internal/testing/fakeworld":         {house: []string{"agent/cluster", "agent/provider", "agent/provider/*", "internal/testing/*"}, banned: []string{"k8s.io/"}},
	"internal/lazyregexp":                {pure: true},
	"internal/form":                      {clockless: true, banned: []string{"k8s.io/api/", "k8s.io/client-go", "os", "context", "sync"}},
	"internal/testing/oddvalues":         {pure: true},
	"internal/goruntime":                 {banned: []string{"k8s.io/", "net"}},
	"internal/kube":                      {},
	"internal/testing/drawn":             {banned: []string{"k8s.io/", "net"}},
	"internal/testing/kubetest":          {house: []string{"internal/kube"}},
	"internal/apierror":                  {banned: []string{"k8s.io/api/", "k8s.io/client-go"}},
	"agent/inventory/waiting":            {pure: true, house: []string{"agent/cluster", "agent/decision", "agent/inventory"}},
	"agent/inventory":                    {house: []string{"agent/cluster", "agent/provider"}, banned: []string{"k8s.io/", "net"}},
	"agent/observe/template":             {pure: true, house: []string{"agent/cluster", "internal/bounded"}},
	"agent/observe/convert":              {clockless: true, house: []string{"agent/cluster", "internal/resourcelist"}, banned: []string{"k8s.io/client-go", "net", "os", "context", "sync"}},
	"agent/observe/volumes":              {clockless: true, house: []string{"agent/cluster", "agent/observe/convert"}, banned: []string{"k8s.io/client-go", "net", "os", "context", "sync"}},
	"agent/observe/devices":              {clockless: true, house: []string{"agent/cluster", "agent/observe/convert"}, banned: []string{"k8s.io/client-go", "net", "os", "sync"}},
	"agent/observe/store":                {house: []string{"agent/cluster", "agent/observe/convert", "agent/observe/devices", "agent/observe/template", "agent/observe/volumes"}, banned: []string{"k8s.io/client-go", "net", "os", "context"}},
	"agent/observe/priorities":           {house: []string{"internal/kube", "agent/cluster", "agent/observe/convert"}},
	"agent/observe":                      {house: []string{"internal/kube", "internal/apierror", "agent/cluster", "agent/inventory", "agent/observe/store", "agent/observe/convert", "agent/observe/devices", "agent/observe/template"}},
	"agent/capacity":                     {house: []string{"internal/kube", "internal/apierror", "internal/resourcelist", "agent/cluster", "agent/decision", "agent/observe/convert"}},
	"agent/act":                          {house: []string{"internal/kube", "agent/cluster", "agent/decision", "agent/provider", "internal/deadline", "internal/heartbeat"}},
	"csrsigner/joined":                   {house: []string{"agent/cluster", "internal/kube", "csrsigner/rules"}, banned: []string{"net", "os"}},
	"agent/nojoin":                       {house: []string{"agent/cluster", "agent/decision", "bootstrap/console", "csrsigner/rules"}, banned: []string{"k8s.io/", "net", "os"}},
	"internal/supervise":                 {house: []string{"internal/heartbeat"}, banned: []string{"k8s.io/"}},
	"agent/report":                       {house: []string{"internal/kube", "agent/cluster", "agent/decision", "agent/plan", "agent/provider", "agent/act", "internal/apierror", "internal/version"}},
	"agent/config/reload":                {house: []string{"agent/config"}, banned: []string{"k8s.io/", "net"}},
	"agent/history":                      {clockless: true, house: []string{"agent/cluster", "agent/decision"}, banned: []string{"k8s.io/", "net", "os", "context"}},
	"agent/page/fleet":                   {pure: true, house: []string{"agent/cluster", "agent/decision"}},
	"agent/page/trouble":                 {pure: true, house: []string{"agent/cluster", "agent/decision", "agent/page/fleet", "csrsigner/rules", "nodecleaner/reaper"}},
	"agent/page":                         {pure: true, house: []string{"agent/cluster", "agent/decision", "agent/page/fleet", "agent/history", "agent/page/trouble"}},
	"agent/config":                       {house: []string{"agent/cluster", "internal/schedule", "agent/decision", "agent/election", "agent/groups", "agent/observe", "agent/plan", "agent/provider/all", "internal/bootid", "internal/form", "internal/quantity", "internal/textfile", "bootstrap", "csrsigner", "csrsigner/rules", "nodecleaner", "bootstrap/attest"}},
	"agent/clients":                      {house: []string{"internal/kube", "userdata", "internal/apierror", "agent/cluster", "agent/config", "agent/election", "agent/groups", "agent/provider", "agent/provider/all", "agent/provider/asg", "agent/provider/nova", "internal/textfile", "internal/version", "bootstrap", "csrsigner", "csrsigner/rules", "userdata/upgrade"}},
	"agent/statefile":                    {house: []string{"internal/atomicfile", "agent/history", "agent/cluster", "agent/config", "agent/decision", "agent/observe/template"}, banned: []string{"k8s.io/", "net"}},
	"agent/doctor":                       {house: []string{"internal/kube", "agent/nojoin", "csrsigner/rules", "userdata", "agent/act", "internal/apierror", "agent/clients", "agent/cluster", "agent/config", "agent/election", "agent/observe/convert", "agent/observe/priorities", "agent/plan", "agent/provider", "agent/provider/all", "bootstrap", "bootstrap/attest", "bootstrap/secret", "csrsigner", "nodecleaner", "internal/servingcert"}},
	"agent/install":                      {house: []string{"internal/kube", "internal/apierror", "internal/atomicfile", "agent/clients", "agent/config", "agent/provider/asg", "bootstrap", "bootstrap/attest", "bootstrap/secret", "units"}},
	"units":                              {},
	"agent/localapi":                     {house: []string{"internal/apierror", "agent/page/fleet", "agent/page/trouble", "agent/cluster", "agent/config", "agent/nojoin", "agent/decision", "agent/election", "internal/flight", "internal/heartbeat", "agent/inventory", "agent/observe", "agent/observe/template", "agent/plan", "agent/report", "internal/version", "csrsigner", "nodecleaner", "nodecleaner/reaper", "csrsigner/rules", "agent/history", "agent/page"}},
	"agent/oneshot":                      {house: []string{"agent/election/rollouts", "internal/kube", "agent/nojoin", "csrsigner/rules", "userdata", "userdata/lint", "bootstrap", "bootstrap/console", "agent/clients", "agent/cluster", "agent/config", "agent/decision", "agent/election", "agent/groups", "agent/inventory", "agent/localapi", "agent/observe", "agent/observe/convert", "agent/observe/priorities", "agent/observe/template", "agent/plan", "agent/provider", "agent/provider/wrap", "agent/statefile", "csrsigner", "nodecleaner", "nodecleaner/reaper"}},
	"agent/replay":                       {house: []string{"agent/config", "agent/decision", "internal/flight", "agent/localapi", "agent/plan"}, banned: []string{"os"}},
	"agent/statusline":                   {house: []string{"agent/cluster", "agent/config", "agent/doctor", "agent/groups", "agent/provider/all", "agent/report"}, banned: []string{"k8s.io/", "net", "os"}},
	"internal/deadline":                  {banned: []string{"k8s.io/", "net", "os"}},
	"agent/election/rollouts":            {house: []string{"agent/cluster", "agent/decision", "agent/election", "internal/bounded", "internal/kube"}},
	"agent/election":                     {house: []string{"internal/kube", "internal/apierror", "internal/bounded", "internal/deadline", "agent/observe/convert", "agent/provider", "agent/provider/wrap"}},
	"csrsigner/rules":                    {pure: true, house: []string{"agent/cluster"}},
	"csrsigner/queue":                    {pure: true},
	"csrsigner/ledger":                   {house: []string{"agent/cluster", "internal/atomicfile", "csrsigner/rules"}, banned: []string{"k8s.io/", "net"}},
	"csrsigner":                          {house: []string{"internal/kube", "agent/cluster", "internal/deadline", "internal/heartbeat", "internal/atomicfile", "internal/servingcert", "csrsigner/ledger", "csrsigner/queue", "csrsigner/rules"}},
	"nodecleaner/reaper":                 {pure: true, house: []string{"agent/cluster"}},
	"nodecleaner":                        {house: []string{"internal/kube", "agent/cluster", "internal/deadline", "internal/heartbeat", "internal/atomicfile", "internal/bootid", "nodecleaner/reaper"}},
	"bootstrap/attest":                   {house: []string{"internal/lazyregexp", "agent/cluster", "internal/atomicfile"}, banned: []string{"k8s.io/"}},
	"bootstrap/console":                  {pure: true},
	"bootstrap/ssm":                      {house: []string{"bootstrap"}, banned: []string{"k8s.io/"}},
	"bootstrap/launchtemplate":           {house: []string{"bootstrap", "userdata", "userdata/upgrade"}, banned: []string{"k8s.io/"}},
	"bootstrap/secret":                   {house: []string{"internal/kube", "bootstrap"}},
	"bootstrap":                          {house: []string{"internal/kube", "agent/cluster", "internal/heartbeat", "internal/atomicfile", "internal/servingcert", "bootstrap/*", "internal/lazyregexp", "userdata", "userdata/upgrade"}},
	"agent":                              {house: []string{"*"}},
	"cmd":                                {house: []string{"agent", "agent/page/fleet", "agent/page/trouble", "agent/config", "agent/decision", "agent/doctor", "agent/install", "cmd/autoscaler-agent/agentsocket", "cmd/autoscaler-agent/joinfile", "cmd/autoscaler-agent/text", "cmd/autoscaler-agent/view", "agent/history", "agent/localapi", "agent/nojoin", "agent/oneshot", "agent/replay", "agent/report", "internal/supervise", "bootstrap/attest", "internal/textfile", "internal/version", "csrsigner", "csrsigner/rules", "nodecleaner", "nodecleaner/reaper", "internal/atomicfile", "agent/cluster", "agent/provider/asg", "agent/provider/asg/iampolicy", "userdata", "userdata/*", "agent/provider/magnum", "agent/provider/nova", "agent/provider/openstack", "cmd/autoscaler-agent/flagvalue", "internal/form", "internal/nodespec", "cmd/autoscaler-agent/renderflags", "cmd/autoscaler-agent/rollout"}, banned: []string{"k8s.io/client-go"}},
}

// impure are the imports that a pure file must not have. math/rand and text/template
// have their own reasons: chance must come as a seed, and templates defeat the
// linker's dead-code elimination.
var impure = []string{"net", "net/http", "os", "os/exec", "os/signal", "syscall", "context", "math/rand", "math/rand/v2", "crypto/rand",
	"text/template", "html/template", "unsafe", "log", "log/slog", "runtime", "plugin", "io/fs", "path/filepath"}

// heavy are the packages of client-go that link every API group or its fakes: 9 MB of the
// binary and 5 MB of resident memory. internal/kube is in their place; its tests compare both.
var heavy = []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/discovery", "k8s.io/client-go/gentype", "k8s.io/client-go/tools/leaderelection"}

func ruleOf(pkg string) (layer, bool) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if f, ok := layers[p]; ok {
			return f, p == pkg || p == "cmd"
		}
	}
	return layer{}, false
}

// importFaults judges one file of a package by its imports.
func importFaults(pkg, file string, imports []string) []string {
	rule, exact := ruleOf(pkg)
	if !exact {
		return []string{fmt.Sprintf("%s: package %s is in no layer: put it into one in agent/imports_test.go", file, pkg)}
	}
	pure := rule.pure || path.Base(file) == "decide.go"
	var faults []string
	fault := func(imp, why string) { faults = append(faults, fmt.Sprintf("%s imports %s: %s", file, imp, why)) }
	for _, imp := range imports {
		if inner, ok := strings.CutPrefix(imp, house); ok {
			if !allowed(rule.house, inner) {
				fault(imp, "not in a layer below")
			}
			continue
		}
		for _, h := range heavy {
			if pkg != "internal/testing/kubetest" && (imp == h || strings.HasPrefix(imp, h+"/")) {
				fault(imp, "it links every API group: internal/kube has those in use")
			}
		}
		if pure && strings.Contains(strings.Split(imp, "/")[0], ".") {
			fault(imp, "a pure file imports the standard library only")
		}
		if pure && slices.Contains(impure, imp) {
			fault(imp, "a pure file has no I/O, no context and no chance")
		}
		for _, b := range rule.banned {
			if imp == b || strings.HasPrefix(imp, strings.TrimSuffix(b, "/")+"/") {
				fault(imp, "banned in this layer")
			}
		}
	}
	return faults
}

func allowed(list []string, inner string) bool {
	for _, a := range list {
		if a == "*" || a == inner || strings.HasSuffix(a, "/*") && path.Dir(inner) == strings.TrimSuffix(a, "/*") {
			return true
		}
	}
	return false
}

// clockFaults finds calls that read a clock, wait or draw lots in a parsed file.
func clockFaults(file string, f *ast.File) []string {
	var faults []string
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok || x.Name != "time" || x.Obj != nil {
			return true
		}
		switch sel.Sel.Name {
		case "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker":
			faults = append(faults, fmt.Sprintf("%s uses time.%s: a pure file gets now as a value", file, sel.Sel.Name))
		}
		return true
	})
	return faults
}

type source struct {
	pkg, file string
	ast       *ast.File
	fset      *token.FileSet
}

func (s source) imports() []string {
	var out []string
	for _, i := range s.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// sources parses every Go file of the product that is no test; tools/ is a module of its own.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(name, "../"))
		if d.IsDir() && (rel == "test" || rel == "tools" || rel == "docs" || rel == "examples" || strings.HasPrefix(d.Name(), ".") && name != ".." || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, source{pkg: path.Dir(rel), file: rel, ast: f, fset: fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("only %d files found: the test looks in the wrong place", len(out))
	}
	return out
}

func TestLayers(t *testing.T) {
	for _, s := range sources(t) {
		for _, f := range importFaults(s.pkg, s.file, s.imports()) {
			t.Error(f)
		}
	}
}

func TestLayersBite(t *testing.T) {
	for _, c := range []struct{ pkg, file, imp string }{
		{"agent/cluster", "agent/cluster/x.go", "net"},
		{"agent/cluster", "agent/cluster/x.go", "k8s.io/api/core/v1"},
		{"agent/decision", "agent/decision/x.go", house + "agent/fit"},
		{"agent/act", "agent/act/x.go", house + "agent/plan"},
		{"agent/plan", "agent/plan/x.go", "context"},
		{"agent/plan", "agent/plan/x.go", "math/rand"},
		{"agent/plan/internal/round", "agent/plan/internal/round/x.go", house + "agent/plan/internal/purchase"},
		{"agent/plan/internal/scaledown", "agent/plan/internal/scaledown/x.go", house + "agent/plan/internal/scaleup"},
		{"agent/binpack", "agent/binpack/x.go", house + "agent/cluster"},
		{"agent/plan", "agent/plan/x.go", house + "agent/provider"},
		{"agent/fit", "agent/fit/x.go", house + "agent/plan"},
		{"userdata", "userdata/x.go", "os"},
		{"userdata", "userdata/x.go", "text/template"},
		{"agent/provider", "agent/provider/x.go", "net/http"},
		{"agent/provider/asg", "agent/provider/asg/x.go", "k8s.io/client-go/kubernetes"},
		{"agent/provider/asg", "agent/provider/asg/x.go", house + "internal/testing/fake"},
		{"agent/observe", "agent/observe/x.go", house + "agent/plan"},
		{"agent/observe", "agent/observe/x.go", house + "agent/provider"},
		{"agent/observe/store", "agent/observe/store/x.go", house + "agent/inventory"},
		{"agent/observe/convert", "agent/observe/convert/x.go", "k8s.io/client-go/kubernetes"},
		{"agent/observe/convert", "agent/observe/convert/x.go", house + "agent/observe/store"},
		{"agent/observe/template", "agent/observe/template/x.go", "k8s.io/api/core/v1"},
		{"agent/inventory", "agent/inventory/x.go", "k8s.io/api/core/v1"},
		{"agent/act", "agent/act/x.go", house + "agent/observe"},
		{"csrsigner", "csrsigner/x.go", house + "nodecleaner"},
		{"csrsigner", "csrsigner/x.go", house + "agent"},
		{"csrsigner/rules", "csrsigner/rules/x.go", house + "csrsigner"},
		{"csrsigner/rules", "csrsigner/rules/x.go", "net/http"},
		{"csrsigner/rules", "csrsigner/rules/decide.go", "k8s.io/api/certificates/v1"},
		{"nodecleaner/reaper", "nodecleaner/reaper/rules.go", "k8s.io/api/core/v1"},
		{"nodecleaner/reaper", "nodecleaner/reaper/rules.go", house + "nodecleaner"},
		{"bootstrap", "bootstrap/x.go", house + "csrsigner"},
		{"cmd/autoscaler-agent", "cmd/autoscaler-agent/x.go", "k8s.io/client-go/kubernetes"},
		{"agent/act", "agent/act/x.go", "k8s.io/client-go/kubernetes"},
		{"agent/clients", "agent/clients/x.go", "k8s.io/client-go/kubernetes/typed/core/v1"},
		{"agent/election", "agent/election/x.go", "k8s.io/client-go/tools/leaderelection/resourcelock"},
		{"agent/act", "agent/act/x.go", house + "internal/testing/kubetest"},
		{"agent/helpers", "agent/helpers/x.go", "fmt"},
	} {
		if len(importFaults(c.pkg, c.file, []string{c.imp})) == 0 {
			t.Errorf("%s may import %s", c.file, c.imp)
		}
	}
	for _, c := range []struct{ pkg, file, imp string }{
		{"agent/plan", "agent/plan/x.go", house + "agent/plan/internal/explain"},
		{"agent/cluster", "agent/cluster/x.go", "net/netip"},
		{"csrsigner", "csrsigner/x.go", house + "csrsigner/rules"},
		{"agent/provider/all", "agent/provider/all/x.go", house + "agent/provider/asg"},
	} {
		if faults := importFaults(c.pkg, c.file, []string{c.imp}); len(faults) > 0 {
			t.Errorf("%v", faults)
		}
	}
}

func TestPureFloorsReadNoClock(t *testing.T) {
	for _, s := range sources(t) {
		if rule, _ := ruleOf(s.pkg); rule.pure || rule.clockless || path.Base(s.file) == "decide.go" {
			for _, f := range clockFaults(s.file, s.ast) {
				t.Error(f)
			}
		}
	}
}

func TestClockRuleBites(t *testing.T) {
	for code, want := range map[string]int{
		"time.Now()":                      1,
		"f := time.Since; f(t)":           1,
		"time.Sleep(1); <-time.After(1)":  2,
		"t.Add(time.Second)":              0,
		"time := clock{}; time.Now()":     0,
		"time.Unix(0, 0).Format(`15:04`)": 0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport \"time\"\nfunc x() { "+code+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := clockFaults("x.go", f); len(got) != want {
			t.Errorf("%s: %q, want %d faults", code, got, want)
		}
	}
}

// A package's doc comment says what the package refuses to do.
func TestPackageDocs(t *testing.T) {
	docs := map[string]string{}
	for _, s := range sources(t) {
		docs[s.pkg] += docText(s.ast)
	}
	for pkg, doc := range docs {
		if fault := docFault(doc); fault != "" {
			t.Errorf("package %s: %s", pkg, fault)
		}
	}
}

func docText(f *ast.File) string {
	if f.Doc == nil {
		return ""
	}
	return f.Doc.Text()
}

func docFault(doc string) string {
	switch {
	case doc == "":
		return "no doc comment"
	case !strings.Contains(strings.Join(strings.Fields(doc), " "), "refuses"):
		return "its doc comment does not say what it refuses to do"
	}
	return ""
}

func TestDocRuleBites(t *testing.T) {
	if docFault("") == "" || docFault("Package x does things.") == "" || docFault("Package x does. It\nrefuses more.") != "" {
		t.Error("the rule for package docs does not bite")
	}
}
