package sqldb

// script is one way to write a name.
type script struct {
	given, family []string
	familyFirst   bool
	separator     string
}

// scripts returns the made-up people's names: several scripts, both directions, with
// combining marks and characters outside the basic plane.
func scripts() []script {
	return []script{
		{
			given:     []string{"Zoë", "José", "Åsa", "François", "Łukasz", "Siân", "Jürgen", "Inés", "Çağla", "Nguyệt"},
			family:    []string{"Müller", "Ørsted", "Núñez", "O’Brien", "Dvořák", "Šimić", "Lefèvre", "Håkansson", "Trần", "D'Angelo"},
			separator: " ",
		},
		{
			given:     []string{"Ольга", "Дмитрий", "Наталія", "Стоян", "Елизавета", "Милош"},
			family:    []string{"Иванова", "Шевченко", "Петров", "Ђорђевић", "Соловьёв"},
			separator: " ",
		},
		{
			given:     []string{"Ελένη", "Γιώργος", "Σοφία", "Νίκος"},
			family:    []string{"Παπαδοπούλου", "Οικονόμου", "Δημητρίου", "Χατζής"},
			separator: " ",
		},
		{
			given:     []string{"فاطمة", "يوسف", "ليلى", "مُحَمَّد"},
			family:    []string{"الحداد", "بن سعيد", "العلي", "منصور"},
			separator: " ",
		},
		{
			given:     []string{"נועה", "דוד", "שירה", "אֵיתָן"},
			family:    []string{"כהן", "לוי", "בן־דוד", "פרידמן"},
			separator: " ",
		},
		{
			given:     []string{"आरती", "विक्रम", "प्रिया", "श्रीकृष्ण"},
			family:    []string{"शर्मा", "द्विवेदी", "पटेल", "क्षत्रिय"},
			separator: " ",
		},
		{
			given:       []string{"小明", "雨桐", "志强", "𠮷龍"},
			family:      []string{"王", "欧阳", "陈", "𠀋"},
			familyFirst: true,
		},
		{
			given:       []string{"さくら", "健太", "ひかり", "勇気"},
			family:      []string{"佐藤", "髙橋", "渡邉", "𠮷田"},
			familyFirst: true,
			separator:   "　", // ideographic space
		},
		{
			given:       []string{"민준", "서연", "지우", "하늘"},
			family:      []string{"김", "이", "박", "제갈"},
			familyFirst: true,
		},
		{
			given:     []string{"สมชาย", "มาลี", "ณัฐ", "พิมพ์ใจ"},
			family:    []string{"ใจดี", "ศรีสุข", "วงศ์ไทย", "น้ำเพชร"},
			separator: " ",
		},
		{
			given:     []string{"Ada", "Grace", "Linus", "Barbara", "Edsger"},
			family:    []string{"🚀", "👩‍🚀", "🏳️‍🌈 Pride", "🇺🇳 United", "👍🏽"},
			separator: " ",
		},
	}
}

// oddNames returns formats that make a name hard to write: each takes given and family
// name. They hold what JSON must escape and what careless code gets wrong.
func oddNames() []string {
	return []string{
		"%s \"Ace\" %s",
		"%s \\ %s",
		"%s\t%s",
		"%s\r\n%s",
		"\x01%s\x1f%s",
		"%s</script><b>%s",
		"%s\u2028%s\u2029",
		"%s\u007f\u0085%s",
		"\u202e%s %s\u202c",
		"\ufeff%s %s",
	}
}

func demoLevels() []string {
	return []string{"bronze", "bronze", "bronze", "silver", "silver", "gold", "platinum"}
}

// demoAttribute is one key and the values it may have.
type demoAttribute struct {
	key    string
	values []string
}

func demoAttributes() []demoAttribute {
	return []demoAttribute{
		{"lang", []string{"en", "de", "fr", "el", "ar", "he", "hi", "zh-Hant", "ja", "ko", "th", "uk"}},
		{"theme", []string{"light", "dark", "auto"}},
		{"newsletter", []string{"yes", "no"}},
		{"plan", []string{"free", "team", "pro"}},
		{"motto", []string{"carpe diem", "“less is more”", "C:\\> echo \"hi\"", "一期一会", "line one\nline two", "🙂"}},
		{"ключ", []string{"значение", ""}},
	}
}

func demoStreets() []string {
	return []string{"Main Street", "Königsallee", "Rue de l’Église", "Большая улица", "Οδός Ερμού", "شارع النيل", "中山路", "桜通り", "세종대로", "ถนนสุขุมวิท"}
}

func demoNotes() []string {
	return []string{
		"Ring twice, the first bell is broken. ", "Leave parcels with the neighbour on the left. ", "Lieferung nur vormittags. ",
		"Домофон не работает. ", "请放在门口。", "Gate code is \"4711\". ", "Third door after the bakery; mind the dog. ",
	}
}
