package openstack

// AccessRule is one call that an application credential may make, as Keystone takes it.
// Path is the one behind the service's endpoint of the catalog.
type AccessRule struct {
	Service string `json:"service"`
	Method  string `json:"method"`
	Path    string `json:"path"`
}
