use super::*;

#[test]
fn a_window_filled_to_the_last_byte_is_full_and_not_empty() {
    let window = Window::new(1000).unwrap();
    window.put(1000, ()).unwrap();
    assert_eq!(window.in_use(), Use { buffered: 1000, in_flight: 0 });
    assert!(matches!(window.try_put(1, ()), Err((Error::Full { .. }, ()))));
}
