package mutate

// Equivalent are mutants that change nothing that anybody could see, by package and
// key, each with the reason. A mutant that is only hard to test is not one of them.
var Equivalent = map[string]map[string]string{
	"csrsigner/rules": {
		`names.go IsSubdomain: never s == ""`:        "the loop finds the empty label",
		`parse.go otherNames: never err != nil`:      "what could not be read has no tag of a sequence",
		`sources.go take: never len(w.wanted) == 0`:  "nothing that is not wanted is noted: it only saves time",
		`sources.go owned: edge id < old`:            "the same machine twice is the same owner",
		`sources.go lay: never len(w.Extra) == 0`:    "no template, no name: it only saves time",
		`sources.go SameMachine: never !okA || !okB`: "without :// there is no / behind it either, and no UUID",
		`sources.go SameMachine: never !okA`:         "as above",
		`sources.go SameMachine: never !okB`:         "as above",
		`sources.go SameMachine: always okA && okB`:  "without a / the ID behind it is empty, which is no UUID",
		`sources.go SameMachine: always okA`:         "as above",
		`sources.go SameMachine: always okB`:         "as above",
	},
	"nodecleaner/reaper": {
		`candidate.go candidate: never c.rule != ""`:                "what a rule of E holds is only looked at in vain: c.rule goes first wherever a Node is judged",
		`sight.go add: edge g.Stale < v.whole`:                      "of two equal words either may be said",
		`sight.go add: edge compareFound(old, found{g, inst}) >= 0`: "of two equal listings either may be taken",
		`breaker.go countErrors: edge over > 0`:                     "nothing is cut off at the front",
	},
}
