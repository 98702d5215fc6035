package localapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// NamesPath is where the local API lists names for the completion of a shell.
const NamesPath = "/names"

// maxNames bounds the answer: among more names a person types another letter.
const maxNames = 200

// serveNames answers GET /names?kind=pod&prefix=default/we with a JSON list of the
// first names of the kind. The names come from memory; the API server is not asked.
func (s *Server) serveNames(w http.ResponseWriter, r *http.Request) {
	kind := r.FormValue("kind")
	var names []string
	switch {
	case kind != "csr":
		names = namesOf(s.Observer.ReadOnlySnapshot(), kind)
	case s.Signer != nil:
		names = s.Signer.Names()
	}
	writeJSON(w, firstNames(names, r.FormValue("prefix")))
}

// namesOf lists the names of a kind in a snapshot.
func namesOf(s cluster.Snapshot, kind string) (names []string) {
	switch kind {
	case "pod":
		for p := range s.AllPods() {
			names = append(names, string(p.Key))
		}
	case "node":
		for _, n := range s.Nodes {
			names = append(names, string(n.Name))
		}
	case "group":
		for _, g := range s.Groups {
			names = append(names, string(g.ID))
		}
	}
	return names
}

// firstNames returns the names that start with prefix, sorted, at most maxNames.
func firstNames(names []string, prefix string) []string {
	list := []string{} // an empty list, and not null
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxNames)]
}
