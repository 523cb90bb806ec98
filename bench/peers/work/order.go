package work

import "time"

// Items is the number of items of an Order.
const Items = 7

// Order is the answer of GET /json. It is a value, made without allocation, so that what a
// peer allocates is its own doing.
type Order struct {
	ID        int64       `json:"id"`
	State     string      `json:"state"`
	CreatedAt time.Time   `json:"created_at"`
	Customer  Customer    `json:"customer"`
	Items     [Items]Item `json:"items"`
	Total     int64       `json:"total_cents"`
	Paid      bool        `json:"paid"`
}

// Customer is who ordered.
type Customer struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	City string `json:"city"`
}

// Item is a line of an Order.
type Item struct {
	Product  int64  `json:"product"`
	Name     string `json:"name"`
	Color    string `json:"color"`
	Quantity int64  `json:"quantity"`
	Cents    int64  `json:"price_cents"`
	Tax      int64  `json:"tax_cents"`
	Gift     bool   `json:"gift"`
}

// NewOrder makes the order with a number. Every field follows from it, and two orders
// share no more than chance has it, so an answer cannot be prepared.
func NewOrder(id int64) Order {
	r := numbers{uint64(id)}
	o := Order{
		ID:        id,
		State:     [...]string{"open", "packed", "sent", "returned"}[r.below(4)],
		CreatedAt: time.Unix(1_767_225_600+r.below(31_536_000), 0).UTC(), // in 2026
		Customer: Customer{
			ID:   1 + r.below(1_000_000),
			Name: [...]string{"Ada Okafor", "Jürgen Weiß", "María Núñez", "中村 さくら", "Tom O'Neill", "Zoë van Dijk"}[r.below(6)],
			City: [...]string{"Lagos", "Köln", "Bogotá", "Sapporo", "Cork", "Utrecht"}[r.below(6)],
		},
		Paid: r.below(2) == 1,
	}
	for i := range o.Items {
		item := &o.Items[i]
		item.Product = 100_000 + r.below(900_000)
		item.Name = [...]string{"Enamel mug", "Desk lamp", "Wool blanket", "Bread knife", "Tea towel", "Oak shelf", "Door mat", "Garden chair"}[r.below(8)]
		item.Color = [...]string{"white", "black", "dark green", "rust"}[r.below(4)]
		item.Quantity = 1 + r.below(5)
		item.Cents = 199 + r.below(20_000)
		item.Tax = item.Cents / 5
		item.Gift = r.below(8) == 0
		o.Total += item.Quantity * item.Cents
	}
	return o
}

// numbers gives the values of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom
// number generators, OOPSLA 2014) from a state.
type numbers struct{ state uint64 }

// below returns a number from 0 to n-1.
func (r *numbers) below(n uint64) int64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int64((z ^ z>>31) % n)
}
