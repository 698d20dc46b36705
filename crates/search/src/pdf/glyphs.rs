//! Characters by the names of their glyphs.

/// Names that are neither one letter nor a letter with its accent.
const NAMES: &str = "space=\u{20} exclam=! quotedbl=\" numbersign=# dollar=$ percent=% ampersand=& \
quotesingle=' quoteright=’ quoteleft=‘ parenleft=( parenright=) asterisk=* plus=+ comma=, hyphen=- \
minus=− period=. slash=/ zero=0 one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 colon=: \
semicolon=; less=< equal== greater=> question=? at=@ bracketleft=[ backslash=\\ bracketright=] \
asciicircum=^ underscore=_ grave=` braceleft={ bar=| braceright=} asciitilde=~ exclamdown=¡ cent=¢ \
sterling=£ currency=¤ yen=¥ brokenbar=¦ section=§ copyright=© ordfeminine=ª guillemotleft=« \
logicalnot=¬ registered=® degree=° plusminus=± paragraph=¶ periodcentered=· ordmasculine=º \
guillemotright=» onequarter=¼ onehalf=½ threequarters=¾ questiondown=¿ multiply=× divide=÷ AE=Æ ae=æ \
OE=Œ oe=œ Oslash=Ø oslash=ø germandbls=ß Eth=Ð eth=ð Thorn=Þ thorn=þ Lslash=Ł lslash=ł dotlessi=ı \
dotlessj=ȷ florin=ƒ endash=– emdash=— quotesinglbase=‚ quotedblleft=“ quotedblright=” quotedblbase=„ \
dagger=† daggerdbl=‡ bullet=• ellipsis=… perthousand=‰ guilsinglleft=‹ guilsinglright=› Euro=€ \
trademark=™ ff=ff fi=fi fl=fl ffi=ffi ffl=ffl fraction=⁄ alpha=α beta=β gamma=γ delta=δ epsilon=ε \
zeta=ζ eta=η theta=θ iota=ι kappa=κ lambda=λ mu=μ nu=ν xi=ξ pi=π rho=ρ sigma=σ tau=τ upsilon=υ phi=φ \
chi=χ psi=ψ omega=ω Gamma=Γ Delta=Δ Theta=Θ Lambda=Λ Xi=Ξ Pi=Π Sigma=Σ Upsilon=Υ Phi=Φ Psi=Ψ Omega=Ω \
lessequal=≤ greaterequal=≥ notequal=≠ infinity=∞ arrowright=→ arrowleft=← summation=∑ product=∏ \
integral=∫ radical=√ partialdiff=∂ element=∈ similar=∼ approxequal=≈ nbspace=\u{a0} sfthyphen=\u{ad}";

/// Endings of names of letters with an accent.
const ACCENTS: [(&str, char); 13] = [
    ("grave", '\u{300}'),
    ("acute", '\u{301}'),
    ("circumflex", '\u{302}'),
    ("tilde", '\u{303}'),
    ("macron", '\u{304}'),
    ("breve", '\u{306}'),
    ("dotaccent", '\u{307}'),
    ("dieresis", '\u{308}'),
    ("ring", '\u{30A}'),
    ("hungarumlaut", '\u{30B}'),
    ("caron", '\u{30C}'),
    ("cedilla", '\u{327}'),
    ("ogonek", '\u{328}'),
];

/// The text of a glyph, by its name; empty if the name says nothing.
pub(super) fn of_name(name: &[u8]) -> String {
    let Ok(name) = std::str::from_utf8(name) else { return String::new() };
    // `a.sc` is a variant of `a`.
    let name = name.split('.').next().unwrap_or_default();
    if name.chars().count() == 1 {
        return name.to_owned();
    }
    if let Some(text) = by_code(name) {
        return text;
    }
    let known = NAMES.split(' ').filter_map(|pair| pair.split_once('='));
    if let Some((_, text)) = known.into_iter().find(|(known, _)| *known == name) {
        return if text.is_empty() { " ".to_owned() } else { text.to_owned() };
    }
    let with_accent = |(ending, accent): &(&str, char)| {
        let letter = name.strip_suffix(ending)?;
        (letter.len() == 1).then(|| format!("{letter}{accent}"))
    };
    let accented = ACCENTS.iter().find_map(with_accent).unwrap_or_default();
    icu_normalizer::ComposingNormalizerBorrowed::new_nfc().normalize(&accented).into_owned()
}

/// Names that are codes: `uni00E9`, `u1F600`.
fn by_code(name: &str) -> Option<String> {
    let one = |code: &str| char::from_u32(u32::from_str_radix(code, 16).ok()?);
    if let Some(codes) = name.strip_prefix("uni")
        && codes.is_ascii()
        && codes.len() >= 4
        && codes.len() % 4 == 0
    {
        return (0..codes.len() / 4).map(|at| one(&codes[at * 4..at * 4 + 4])).collect();
    }
    let code = name.strip_prefix('u').filter(|code| (4..=6).contains(&code.len()))?;
    one(code).map(String::from)
}
