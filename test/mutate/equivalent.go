package mutate

// Equivalent are mutants that change nothing that anybody could see, by package and
// key, each with the reason. A mutant that is only hard to test is not one of them.
var Equivalent = map[string]map[string]string{
	"csrsigner":   {},
	"nodecleaner": {},
}
