package decision

// GrowthLimit answers how many machines a node group may still add, and what keeps it from
// adding more: the rule and its words. Rule is empty where nothing does.
type GrowthLimit struct {
	Count int    `json:"count"`
	Rule  string `json:"rule,omitempty"`
	Why   string `json:"why,omitempty"`
}
