package mutate

// Equivalent are mutants that change nothing that anybody could see, by package and
// key, each with the reason. A mutant that is only hard to test is not one of them.
var Equivalent = map[string]map[string]string{
	"csrsigner": {},
	"nodecleaner": {
		`decide.go candidate: never c.rule != ""`: "what a rule of E holds is only looked at in vain: c.rule goes first wherever a Node is judged",
		`sight.go add: edge g.Stale < v.whole`:    "of two equal words either may be said",
	},
}
