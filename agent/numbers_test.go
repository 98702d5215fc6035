package agent

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// numbersOf are the packages that read objects which a thief may write: with the agent's kubeconfig, a machine's credential, or as the
// author of pods.
var numbersOf = []string{"agent/act", "agent/capacity", "agent/election", "agent/fit", "agent/observe", "agent/oneshot", "agent/plan", "bootstrap", "csrsigner", "internal/resourcelist", "nodecleaner"}

// numberReads are the calls, fields and methods by which a number or a time of an object is read.
var numberReads = map[string]bool{"strconv.Atoi": true, "strconv.ParseInt": true, "strconv.ParseUint": true, "strconv.ParseFloat": true, "time.Parse": true, "time.ParseDuration": true, "time.Unix": true,
	"bounded.In": true, "bounded.Times": true, "LeaseDurationSeconds": true, "LeaseTransitions": true, "RenewTime": true, "AcquireTime": true, "LastTransitionTime": true, "LastHeartbeatTime": true,
	"TimeAdded": true, "ExpirationSeconds": true, "TerminationGracePeriodSeconds": true, "TolerationSeconds": true, "RestartCount": true, "MilliValue": true}

// number is what bounds a number or a time: least and most stand in the function as they are written here. A row without a most says
// in outside why none is needed.
type number struct{ least, most, outside string }

const (
	ownNode = "it decides of the Node and the pods of who writes it alone (agent/plan's TestNumbersOfAThief)"
	written = "it is written here, or handed on"
)

// numbers has a row for each function that reads one.
var numbers = map[string]number{
	"agent/capacity bookedAt":                 {outside: "the agent writes it; a namespace's own request ends earlier or later by it"},
	"agent/capacity sameConditions":           {outside: written},
	"agent/capacity validUntil":               {"0", "strconv.ParseUint(r.Spec.Parameters[\"ValidUntilSeconds\"], 10, 31)", "as without the parameter: the request does not end by itself"},
	"agent/election create":                   {outside: written},
	"agent/election giveBack":                 {outside: written},
	"agent/election lasts":                    {"time.Second", "longest", "the agent's own setting counts, and a line tells it"},
	"agent/election renewal":                  {outside: written},
	"agent/election runsOut":                  {outside: "lasts bounds it"},
	"agent/election saw":                      {"-longest", "math.MaxInt64", "the Lease counts as renewed now, and a line tells it"},
	"agent/election transitions":              {"0", "math.MaxInt32-1", "the most"},
	"agent/election unfinished":               {"0", "mostMachines", "the call is not taken up again, and a line tells it"},
	"agent/election/rollouts Parse":           {"", "bounded.Times", "a time more than a day ahead is now"},
	"agent/fit label":                         {"", "strconv.ParseInt(value, 10, 64)", "no number: the selector does not match, as kube-scheduler has it"},
	"agent/observe/convert Node":              {outside: ownNode},
	"agent/observe/convert Pod":               {"", "math.MaxInt32", "the most; the drain has its own limit"},
	"agent/observe/convert covered":           {outside: "it says which of two tolerations is another's double"},
	"agent/observe/convert podWishes":         {outside: "every author of a pod may write what keeps it for good"},
	"agent/observe/convert resizeStatus":      {outside: written},
	"agent/observe/convert stripNode":         {outside: written},
	"agent/observe/convert stripPod":          {outside: written},
	"agent/observe/convert trouble":           {"0", "mostRestarts", "the least or the most"},
	"agent/observe/devices rawDevice":         {outside: "an operator writes it, in groups.yaml"},
	"agent/observe/priorities parse":          {outside: "an operator's order of groups: every whole number has its place"},
	"agent/observe/store PutQuota":            {"0", "max(left, 0)", "a quota says how many pods come, and never more than their controller asks"},
	"agent/observe/template unlikely":         {"max(1, r.of/likely)", "r.of*likely", "the template's amount counts for the next machine, and a line tells it"},
	"agent/plan/internal/round OptedOut":      {outside: "what is no time keeps the node for good, as the annotation without one"},
	"agent/plan/internal/scaledown OptOutNow": {outside: ownNode},
	"agent/plan/internal/scaledown markTime":  {"at.Before(n.Created)", "at.Before(now)", "now"},
	"bootstrap ReadJoin":                      {outside: "it is told; the token itself is judged by usable"},
	"bootstrap expires":                       {outside: "usable and readSlot judge it"},
	"bootstrap inPool":                        {"n >= 0", "n < poolSize", "no token of the agent's"},
	"bootstrap usable":                        {"expires.After(now)", "maxTokenTTL+time.Hour", "the token is not used, and another one is made"},
	"bootstrap/attest fault":                  {outside: "its form; skew judges the time"},
	"bootstrap/attest skew":                   {"", "maxSkew", "the request is refused (A4)"},
	"bootstrap/console clockOff":              {outside: "it is told of the machine that wrote it"},
	"csrsigner lives":                         {"Abs()", "leaseFresh", "the node controller's condition decides"},
	"csrsigner toRequest":                     {outside: "rules' expiration judges it"},
	"csrsigner younger":                       {outside: "the API server writes it"},
	"csrsigner/rules expiration":              {"minExpiration", "f.MaxExpiration", "the request is denied"},
	"internal/resourcelist Resources":         {"", "capped", "the most"},
	"nodecleaner lookAtNeighbours":            {"Abs()", "ccmFresh", "the Lease has to move while the agent looks"},
	"nodecleaner lay":                         {outside: written},
	"nodecleaner readKept":                    {outside: "it is told"},
	"nodecleaner readLeases":                  {outside: "the stamp counts for nothing but that it changes, by this machine's clock (L2)"},
	"nodecleaner toNode":                      {outside: "a Node's own heartbeat can keep it alone"},
}

// TestNumbersOfOthers: every function that reads a number or a time of an object which a thief may write has a row with its least and
// its most, which it holds, or why it needs none.
func TestNumbersOfOthers(t *testing.T) {
	found := map[string]string{} // sources
	for _, root := range numbersOf {
		if err := filepath.WalkDir("../"+root, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, file, nil, 0)
			if err != nil {
				return err
			}
			for _, d := range parsed.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || !readsNumber(f) {
					continue
				}
				var source strings.Builder
				if err := printer.Fprint(&source, files, f); err != nil {
					return err
				}
				found[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../")+" "+f.Name.Name] += source.String()
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		row, known := numbers[name]
		switch {
		case !known:
			t.Errorf("%s reads a number or a time that others write: give it a least and a most (internal/bounded), and a row", name)
		case row.outside == "":
			t.Errorf("%s: the row does not say what counts outside of the bounds", name)
		case !strings.Contains(found[name], row.most) || row.least != "0" && !strings.Contains(found[name], row.least):
			t.Errorf("%s has no %q or no %q:\n%s", name, row.least, row.most, found[name])
		}
	}
	for name := range numbers {
		if found[name] == "" {
			t.Errorf("%s reads no number any more: take its row out", name)
		}
	}
}

func readsNumber(f *ast.FuncDecl) (reads bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			from, _ := s.X.(*ast.Ident)
			reads = reads || numberReads[s.Sel.Name] || from != nil && numberReads[from.Name+"."+s.Sel.Name]
		}
		return !reads
	})
	return reads
}
