package aws

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SetListPrice sets what a type costs an hour on demand in the price list of the cloud's region. A type without a price is not in
// the list.
func (c *Cloud) SetListPrice(typ string, price float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listPrices == nil {
		c.listPrices = map[string]float64{}
	}
	c.listPrices[typ] = price
}

// getProducts answers as the Price List Query API: each product is JSON in a string, with its price on demand and, as for most
// types, one for a reservation.
func (c *Cloud) getProducts(r *request) (any, *apiError) {
	var in struct {
		ServiceCode, FormatVersion, NextToken string
		MaxResults                            int
		Filters                               []struct{ Type, Field, Value string }
	}
	if err := decodeJSON(r.body, &in); err != nil {
		return nil, err
	}
	if in.ServiceCode != "AmazonEC2" {
		return nil, fail("InvalidParameterException", "Invalid ServiceCode")
	}
	wanted := map[string]string{"operatingSystem": "Linux", "preInstalledSw": "NA", "tenancy": "Shared", "capacitystatus": "Used", "marketoption": "OnDemand", "regionCode": c.opts.Region}
	types := slices.Sorted(maps.Keys(c.listPrices))
	for _, f := range in.Filters {
		switch {
		case len(f.Value) > 1024:
			return nil, fail("InvalidParameterException", "Value at 'filters.value' failed to satisfy constraint: Member must have length less than or equal to 1024")
		case f.Field == "instanceType" && f.Type == "ANY_OF":
			of := strings.Split(f.Value, ",")
			types = slices.DeleteFunc(types, func(t string) bool { return !slices.Contains(of, t) })
		case f.Type != "TERM_MATCH" || wanted[f.Field] == "":
			return nil, fail("ValidationException", "This emulated AWS does not emulate the filter "+f.Type+" of "+f.Field+".")
		case f.Value != wanted[f.Field]:
			types = nil
		}
	}
	from := 0
	if in.NextToken != "" {
		if _, err := fmt.Sscanf(in.NextToken, "after-%d", &from); err != nil || from > len(types) {
			return nil, fail("InvalidNextTokenException", "The pagination token is invalid.")
		}
	}
	size := min(max(in.MaxResults, 1), 100)
	out := map[string]any{"FormatVersion": "aws_v1"}
	list := []string{}
	for _, t := range types[from:min(from+size, len(types))] {
		list = append(list, product(t, c.opts.Region, c.listPrices[t]))
	}
	if out["PriceList"] = list; from+size < len(types) {
		out["NextToken"] = fmt.Sprintf("after-%d", from+size)
	}
	return out, nil
}

func product(typ, region string, price float64) string {
	term := func(unit string, usd float64) map[string]any {
		return map[string]any{"X.Y": map[string]any{"priceDimensions": map[string]any{"X.Y.Z": map[string]any{"unit": unit, "pricePerUnit": map[string]string{"USD": fmt.Sprintf("%.10f", usd)}}}}}
	}
	text, _ := json.Marshal(map[string]any{
		"serviceCode": "AmazonEC2",
		"product":     map[string]any{"productFamily": "Compute Instance", "sku": "X", "attributes": map[string]string{"instanceType": typ, "regionCode": region}},
		"terms":       map[string]any{"OnDemand": term("Hrs", price), "Reserved": term("Quantity", price*5000)},
	})
	return string(text)
}
