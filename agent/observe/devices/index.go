package devices

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// Index holds device classes, slices, claims and their templates, and which pods use which of them.
type Index struct {
	classes   map[string]class             // by name
	slices    map[string]*slice            // by name
	pools     map[poolID]map[string]*slice // by name
	onNode    map[cluster.NodeName]map[string]*slice
	claims    map[string]claim // by "namespace/name"
	templates map[string]*resourcev1.DeviceClaim
	taken     map[deviceID]string // the claim that has a device
	pods      map[cluster.PodKey]Use
	users     map[reference][]cluster.PodKey
	selectors map[string]bool   // that a request has been met with
	lasting   map[string]bool   // those of them that pieces of headroom have, which nobody names again
	partial   map[poolID]string // pools with shared counters that are not whole, with their names
	unjudged  []*device         // that no node has alone
	stale     bool              // unjudged is to be gathered anew
	rules     map[string]*resourcev1beta2.DeviceTaintRuleSpec
	claiming  int        // pods with claims of their own
	claimed   bool       // a piece of headroom has had claims of its own
	asked     bool       // one has asked for extended resources
	unread    string     // why the objects are not read; empty: they are
	programs  *cel.Cache // nil until the first selector
	changed   changes
}

// changes are what has to be worked out anew.
type changes struct {
	pods  map[cluster.PodKey]bool
	nodes map[cluster.NodeName]bool
	all   bool
	// templates tells that a selector is new, of which the devices of templates say nothing yet.
	templates bool
}

type poolID struct{ driver, pool string }

type deviceID struct{ driver, pool, device string }

// reference is what a pod names.
type reference struct {
	template bool
	key      string // "namespace/name"
}

// Use is how one pod uses claims.
type Use struct {
	node   cluster.NodeName
	claims []claimUse
	asks   []extendedAsk
}

// claimUse is one of spec.resourceClaims.
type claimUse struct {
	claim    string // "namespace/name"; empty: it is not made yet
	template string // that it is made from; empty: the pod names the claim itself
}

type claim struct {
	spec      *resourcev1.DeviceClaim
	deleting  bool
	allocated []deviceID         // without admin access
	on        []cluster.NodeTerm // nil: it is not allocated
	consumers int
}

func NewIndex() *Index {
	return &Index{
		classes: map[string]class{}, slices: map[string]*slice{}, pools: map[poolID]map[string]*slice{}, onNode: map[cluster.NodeName]map[string]*slice{}, claims: map[string]claim{},
		templates: map[string]*resourcev1.DeviceClaim{}, taken: map[deviceID]string{}, pods: map[cluster.PodKey]Use{}, users: map[reference][]cluster.PodKey{}, selectors: map[string]bool{}, lasting: map[string]bool{}, partial: map[poolID]string{}, rules: map[string]*resourcev1beta2.DeviceTaintRuleSpec{},
		unread:  "being read",
		changed: changes{pods: map[cluster.PodKey]bool{}, nodes: map[cluster.NodeName]bool{}},
	}
}

// SetUnread tells why the objects are not read, in words that follow "the objects of resource.k8s.io/v1 are"; empty: they are read. Before,
// no claim is judged.
func (x *Index) SetUnread(why string) {
	x.changed.all = x.changed.all || why != x.unread
	x.unread = why
}

// Read tells whether the objects are read.
func (x *Index) Read() bool { return x.unread == "" }

// Wanted tells whether a pod has claims, and whether one has or asks for an extended resource, which a DeviceClass may back.
func (x *Index) Wanted() (claims, any bool) {
	return x.claiming > 0 || x.claimed, len(x.pods) > 0 || x.claimed || x.asked
}

// PodUse returns how a pod uses claims.
func PodUse(p *corev1.Pod) Use {
	out := Use{node: cluster.NodeName(p.Spec.NodeName), asks: extendedAsks(&p.Spec)}
	for i := range p.Spec.ResourceClaims {
		c, u := &p.Spec.ResourceClaims[i], claimUse{}
		if c.ResourceClaimName != nil {
			u.claim = p.Namespace + "/" + *c.ResourceClaimName
		} else if c.ResourceClaimTemplateName != nil {
			u.template = p.Namespace + "/" + *c.ResourceClaimTemplateName
			at := slices.IndexFunc(p.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == c.Name })
			if at >= 0 && p.Status.ResourceClaimStatuses[at].ResourceClaimName == nil {
				continue // the pod needs none
			}
			if at >= 0 {
				u.claim = p.Namespace + "/" + *p.Status.ResourceClaimStatuses[at].ResourceClaimName
			}
		}
		out.claims = append(out.claims, u)
	}
	return out
}

func (u *Use) references() iter.Seq[reference] {
	return func(yield func(reference) bool) {
		for _, c := range u.claims {
			if c.claim != "" && !yield(reference{key: c.claim}) || c.template != "" && !yield(reference{template: true, key: c.template}) {
				return
			}
		}
	}
}

// SetPod stores how a pod uses claims, in place of its use before, and completes its class.
func (x *Index) SetPod(key cluster.PodKey, u Use, class *cluster.PodClass) {
	if len(u.claims)+len(u.asks) == 0 {
		x.DeletePod(key)
		return
	}
	if old, had := x.pods[key]; !had || !reflect.DeepEqual(old.claims, u.claims) || old.node != u.node {
		x.DeletePod(key)
		for r := range u.references() {
			if !slices.Contains(x.users[r], key) {
				x.users[r] = append(x.users[r], key)
			}
			x.touch(r)
		}
	}
	if _, had := x.pods[key]; !had && len(u.claims) > 0 {
		x.claiming++
	}
	x.pods[key] = u
	x.Complete(key, class)
	delete(x.changed.pods, key)
}

// DeletePod removes a pod.
func (x *Index) DeletePod(key cluster.PodKey) {
	u, had := x.pods[key]
	if !had {
		return
	}
	if len(u.claims) > 0 {
		x.claiming--
	}
	delete(x.pods, key)
	delete(x.changed.pods, key)
	for r := range u.references() {
		left := slices.DeleteFunc(x.users[r], func(k cluster.PodKey) bool { return k == key })
		if x.users[r] = left; len(left) == 0 {
			delete(x.users, r)
		}
		x.touch(r)
	}
}

// touch has the pods that name something completed anew.
func (x *Index) touch(r reference) {
	for _, key := range x.users[r] {
		x.changed.pods[key] = true
	}
}

// TakeChangedPods returns the pods whose demand may be another one than it was, with their nodes.
func (x *Index) TakeChangedPods() map[cluster.PodKey]cluster.NodeName {
	c, out := &x.changed, map[cluster.PodKey]cluster.NodeName{}
	if c.all {
		x.selectors = maps.Clone(x.lasting)
		for key := range x.pods {
			c.pods[key] = true
		}
		for name := range x.onNode {
			c.nodes[name] = true
		}
		c.all = false
	}
	for key := range c.pods {
		out[key] = x.pods[key].node
	}
	clear(c.pods)
	return out
}

// TakeChangedNodes returns the nodes whose devices may be others than they were.
func (x *Index) TakeChangedNodes() []cluster.NodeName {
	out := slices.Collect(maps.Keys(x.changed.nodes))
	clear(x.changed.nodes)
	x.changed.templates = false
	return out
}

// Changed tells whether there are any.
func (x *Index) Changed() bool {
	return x.changed.all || x.changed.templates || len(x.changed.pods)+len(x.changed.nodes) > 0
}

// PutClass stores a DeviceClass.
func (x *Index) PutClass(c *resourcev1.DeviceClass) {
	now := class{selectors: expressions(c.Spec.Selectors), created: c.CreationTimestamp.Time}
	if c.Spec.ExtendedResourceName != nil {
		now.resource = *c.Spec.ExtendedResourceName
	}
	if old, had := x.classes[c.Name]; !had || !reflect.DeepEqual(old, now) {
		x.classes[c.Name], x.changed.all = now, true
	}
}

// DeleteClass removes a DeviceClass.
func (x *Index) DeleteClass(name string) {
	delete(x.classes, name)
	x.changed.all = true
}

// PutRule stores a DeviceTaintRule.
func (x *Index) PutRule(r *resourcev1beta2.DeviceTaintRule) {
	if old := x.rules[r.Name]; old == nil || !reflect.DeepEqual(*old, r.Spec) {
		x.rules[r.Name], x.changed.all = &r.Spec, true
	}
}

// DeleteRule removes a DeviceTaintRule.
func (x *Index) DeleteRule(name string) {
	delete(x.rules, name)
	x.changed.all = true
}

// PutTemplate stores a ResourceClaimTemplate.
func (x *Index) PutTemplate(t *resourcev1.ResourceClaimTemplate) {
	key := t.Namespace + "/" + t.Name
	x.templates[key] = &t.Spec.Spec.Devices
	x.touch(reference{template: true, key: key})
}

// DeleteTemplate removes the ResourceClaimTemplate "namespace/name".
func (x *Index) DeleteTemplate(key string) {
	delete(x.templates, key)
	x.touch(reference{template: true, key: key})
}

// PutClaim stores a ResourceClaim.
func (x *Index) PutClaim(c *resourcev1.ResourceClaim) {
	row := claim{spec: &c.Spec.Devices, deleting: c.DeletionTimestamp != nil, consumers: len(c.Status.ReservedFor)}
	if a := c.Status.Allocation; a != nil {
		row.on = []cluster.NodeTerm{} // every node
		if a.NodeSelector != nil {
			row.on = convert.NodeTerms(a.NodeSelector.NodeSelectorTerms)
		}
		for _, r := range a.Devices.Results {
			if r.AdminAccess == nil || !*r.AdminAccess {
				row.allocated = append(row.allocated, deviceID{r.Driver, r.Pool, r.Device})
			}
		}
	}
	x.setClaim(c.Namespace+"/"+c.Name, &row)
}

// DeleteClaim removes the ResourceClaim "namespace/name".
func (x *Index) DeleteClaim(key string) { x.setClaim(key, nil) }

func (x *Index) setClaim(key string, now *claim) {
	old := x.claims[key]
	for _, d := range old.allocated {
		if x.taken[d] == key {
			delete(x.taken, d)
		}
		x.poolChanged(poolID{d.driver, d.pool})
	}
	if delete(x.claims, key); now != nil {
		x.claims[key] = *now
		for _, d := range now.allocated {
			x.taken[d] = key
			x.poolChanged(poolID{d.driver, d.pool})
		}
	}
	x.touch(reference{key: key})
}

func (x *Index) poolChanged(id poolID) {
	for _, s := range x.pools[id] {
		if s.node != "" {
			x.changed.nodes[s.node] = true
		}
	}
}

// PutSlice stores a ResourceSlice.
func (x *Index) PutSlice(s *resourcev1.ResourceSlice) { x.setSlice(s.Name, newSlice(s)) }

// DeleteSlice removes a ResourceSlice.
func (x *Index) DeleteSlice(name string) { x.setSlice(name, nil) }

func (x *Index) setSlice(name string, now *slice) {
	if old := x.slices[name]; old != nil {
		x.poolChanged(old.id)
		x.sharedChanged(old)
		remove(x.pools, old.id, name)
		remove(x.onNode, old.node, name)
		delete(x.slices, name)
		x.noteWhole(old.id)
	}
	if now != nil {
		x.slices[name] = now
		insert(x.pools, now.id, name, now)
		insert(x.onNode, now.node, name, now)
		x.poolChanged(now.id)
		x.sharedChanged(now)
		x.noteWhole(now.id)
	}
}

// sharedChanged notes that devices that are not judged have come or gone: any request may be for them.
func (x *Index) sharedChanged(s *slice) {
	if s.why != "" || slices.ContainsFunc(s.devices, func(d *device) bool { return d.why != "" }) {
		x.stale, x.changed.all = true, true
	}
}

func insert[K comparable](of map[K]map[string]*slice, k K, name string, s *slice) {
	if of[k] == nil {
		of[k] = map[string]*slice{}
	}
	of[k][name] = s
}

func remove[K comparable](of map[K]map[string]*slice, k K, name string) {
	if delete(of[k], name); len(of[k]) == 0 {
		delete(of, k)
	}
}
