package openstack

// addMagnum adds the container infrastructure API to the catalog.
func (c *Cloud) addMagnum() {}
